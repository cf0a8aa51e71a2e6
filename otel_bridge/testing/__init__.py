"""Doubles for tests: an OTLP/HTTP backend inside the process, an exporter that keeps what it gets, a small session.

`Receiver` takes what a real backend would take, over a real socket, and gives it back as the `Span` values that the
mapping made, so that a test can compare what was sent with what arrived::

    with Receiver() as receiver:
        ...  # export to receiver.endpoint
        receiver.wait_for(lambda r: len(r.spans) == 3)

It can be told to answer as backends do on bad days, by a list of replies or by a function::

    Receiver(replies=[CannedReply(status=503, headers={"Retry-After": "1"}), CannedReply(status=400)])
    Receiver(replies=lambda request: CannedReply(status=413 if len(request.spans) > 10 else 200))

`CapturingExporter` is for programs that hand entries to a `Bridge` or log them by a `BridgeHandler`, without a socket;
`session_entries` are those of a whole debug session::

    exporter = CapturingExporter()
    with Bridge(exporter) as bridge:
        for entry in session_entries():
            bridge.feed(entry)
    assert "tools/call evaluate_expression" in [span.name for span in exporter.spans]

Nothing else in the package imports this module, except the `demo` command when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from otel_bridge.testing.decoding import decode_spans
from otel_bridge.testing.entries import session_entries
from otel_bridge.testing.receiver import Receiver
from otel_bridge.testing.server import CannedReply, Request

if TYPE_CHECKING:
    from otel_bridge.testing.exporter import CapturingExporter

__all__ = ["CannedReply", "CapturingExporter", "Receiver", "Request", "decode_spans", "session_entries"]


def __getattr__(name: str) -> object:
    if name == "CapturingExporter":  # imports the SDK, which the demo can do without
        from otel_bridge.testing.exporter import CapturingExporter

        return CapturingExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
