"""Finished files as a whole: what several of them have in common counts once."""

from __future__ import annotations

from pathlib import Path

from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.replay import expects_dap, mapped
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from tests.recordings import Recording

LONG_AFTER_MS = 4_000_000_000_000


def replayed(folder: Path) -> list[Span]:
    """The spans of a folder's logs, with the DAP traces beside them."""
    stage = MappingStage(MappingOptions(), lambda line: None, expects_dap(()))
    portions = mapped([str(folder)], stage, LONG_AFTER_MS, lambda *_: None, lambda _: None)
    return [span for portion in portions for span in portion]


def test_dap_requests_of_a_session_in_two_logs_are_there_once(tmp_path: Path) -> None:
    """Two files that are no rotation of one another, as a log cut in the middle, share what lies beside them."""
    recording = Recording("happy")
    half = len(recording.lines) // 2
    (tmp_path / "first.log").write_bytes(b"".join(recording.lines[:half]))
    (tmp_path / "second.log").write_bytes(b"".join(recording.lines[half:]))
    for trace in recording.dap_traces:
        path = tmp_path / "sessions" / trace.session_id / f"run-{trace.run_ms}" / f"dap-trace-{trace.session_id}.ndjson"
        path.parent.mkdir(parents=True)
        path.write_bytes(trace.data)

    ids = [span.span_id for span in replayed(tmp_path) if span.name.startswith("dap ")]

    assert ids
    assert len(ids) == len(set(ids))
