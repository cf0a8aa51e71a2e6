"""No planted secret of the recorded log leaves, but for those that nothing could tell."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from otel_bridge.entries.dap import DapMessage, DapReader
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import take_changes
from tests.recordings import Recording
from tests.sessions.reading import items_of

PLANTED = (
    "ghp_NAME0123456789abcdefABCDEF0123456789",
    "cond-hunter2",
    "log-hunter2",
    "stdout-hunter2",
    "stdoutkey-9999",
    "ghp_ARGS0123456789abcdefABCDEF0123456789ab",
    "args-hunter2",
    "launchenv-secret-5555",
    "ghp_LAUNCHENV0123456789abcdefABCDEF0123",
    "dap-launch-hunter2",
    "adapterenv-secret-6666",
    "eval-hunter2",
    "sk-evalLITERAL0123456789abcdefABCDEF01",
    "ghp_EVALLIT0123456789abcdefABCDEF0123456789",
    "kwarg-secret-4444",
    "attach-hunter2",
    "attach-bearer-1212",
    "srv-my-secret-8888",
    "swordfish-plain",
    "concat-hunter2",
)
"""Every secret that the recording's client planted or read."""

NOTHING_TELLS = {
    Capture.METADATA: frozenset[str](),
    Capture.ARGUMENTS: frozenset[str](),
    # the value of a variable named `innocent`: 'the pw is swordfish-plain'
    Capture.FULL: frozenset(("swordfish-plain",)),
}
"""What has neither a telling name nor a shape, by capture level."""


@pytest.mark.parametrize("capture", Capture)
def test_only_what_nothing_tells_leaves(capture: Capture) -> None:
    """Not in a name, an attribute, an event, a status, nor in what is saved for a restart."""
    mapping = LogMapping(MappingOptions(capture=capture, max_value_bytes=1 << 20))
    mapping.dap_calls_kept = 1_000
    spans, saved = [], []
    for item in items_of(Recording("secrets").log):
        spans += mapping.take([item])
        saved.append(repr(take_changes(mapping)))
    for trace in Recording("secrets").dap_traces:
        for message in DapReader(trace.session_id).feed(trace.data):
            assert isinstance(message, DapMessage)
            spans += mapping.take_dap(trace.session_id, [message])
            saved.append(repr(take_changes(mapping)))
    spans += mapping.end(mapping.latest_ms + 1)
    spans += mapping.close_dap(list(mapping.dap))
    assert any(span.name == "dap evaluate" for span in spans)
    sent = "\n".join(repr(asdict(span)) for span in spans)
    everything = sent + "\n".join(saved)

    leaked = {secret for secret in PLANTED if secret in everything}
    assert leaked == NOTHING_TELLS[capture]
    assert not re.search(r"hunter2|ghp_[A-Z]", everything)
