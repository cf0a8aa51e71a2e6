"""The recorded logs that other tests rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calls import Outcome
from tests.recordings import RECORDINGS, Recording, recording


@pytest.mark.parametrize("kept", RECORDINGS, ids=lambda kept: kept.name)
def test_recording_is_whole(kept: Recording) -> None:
    """Every recording has a log with calls that ends with a newline, and a record in the order of sending."""
    assert kept.log.endswith(b"\n")
    assert len(kept.lines) == kept.log.count(b"\n")
    assert [call.seq for call in kept.calls] == list(range(len(kept.calls)))
    assert b"tool:call" in kept.log


def test_rotated_log_is_read_oldest_first(tmp_path: Path) -> None:
    """A rotation chain is one log that starts with its oldest file, unpacked as in memory."""
    kept = recording("rotate_real")

    assert [name for name, _ in kept.log_files] == ["server1.log", "server.log"]
    assert [path.read_bytes() for path in kept.unpack(tmp_path)] == [data for _, data in kept.log_files]


def test_record_tells_answers_from_silence() -> None:
    """A call whose server was killed has no end and no answer, the others have both."""
    calls = recording("kill9").calls

    silent = [call for call in calls if call.outcome is Outcome.NO_RESPONSE]
    assert [(call.tool, call.end_ms) for call in silent] == [("evaluate_expression", None)]
    assert all(call.end_ms is not None and call.fields for call in calls if call not in silent)


def test_dap_traces_know_their_session() -> None:
    """The traces of the debug adapter protocol carry the ids of the sessions that calls made, oldest run first."""
    kept = recording("concurrent")

    assert {trace.session_id for trace in kept.dap_traces} <= {call.created_session_id for call in kept.calls}
    assert [trace.run_ms for trace in kept.dap_traces] == sorted(trace.run_ms for trace in kept.dap_traces)
    assert len(kept.dap_traces) == 3
