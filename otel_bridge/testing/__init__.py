"""Doubles for tests: an OTLP/HTTP backend inside the process.

`Receiver` takes what a real backend would take, over a real socket, and gives it back as the `Span` values that the
mapping made, so that a test can compare what was sent with what arrived::

    with Receiver() as receiver:
        ...  # export to receiver.endpoint
        receiver.wait_for(lambda r: len(r.spans) == 3)

It can be told to answer as backends do on bad days, by a list of replies or by a function::

    Receiver(replies=[CannedReply(status=503, headers={"Retry-After": "1"}), CannedReply(status=400)])
    Receiver(replies=lambda request: CannedReply(status=413 if len(request.spans) > 10 else 200))

Nothing else in the package imports this module, except the `demo` command when it runs.
"""

from __future__ import annotations

from otel_bridge.testing.decoding import decode_spans
from otel_bridge.testing.receiver import Receiver
from otel_bridge.testing.server import CannedReply, Request

__all__ = ["CannedReply", "Receiver", "Request", "decode_spans"]
