"""What an open session without open calls takes in memory, counted by `tracemalloc`: `session_bytes.py SESSIONS`."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import uuid

from benchmarks.live_log import opening
from benchmarks.many_sessions import step
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sources import Chunk

_START_MS = 1_796_071_984_000
_LATER_MS = 60_000
"""Until nothing of the calls is remembered any more that only serves to tell equal entries apart."""


def opened(sessions: int) -> MappingStage:
    """So many sessions, each of which has evaluated, stepped and paused; and all is saved."""
    stage = MappingStage(MappingOptions(), lambda malformed: sys.exit(str(malformed)))
    read_bytes = 0

    def take(data: bytes) -> None:
        nonlocal read_bytes
        stage.take(Chunk("chain", "generation", "sessions.log", read_bytes, data))
        stage.cut()
        read_bytes += len(data)

    for number in range(sessions):
        session_id, name, time_ms = str(uuid.UUID(int=number + 1, version=4)), f"session {number}", _START_MS + number
        take(opening(session_id, name, time_ms))
        take(step(session_id, name, time_ms, is_evaluation=True))
        take(step(session_id, name, time_ms, is_evaluation=False))
    last_id = str(uuid.UUID(int=1, version=4))
    take(step(last_id, "session 0", _START_MS + sessions + _LATER_MS, is_evaluation=True))
    (log,) = stage.logs.values()
    if len(log.mapping.sessions) != sessions:
        raise RuntimeError(f"{len(log.mapping.sessions)} sessions are open, not {sessions}")
    return stage


def main() -> None:
    """Prints the bytes a session."""
    sessions = int(sys.argv[1])
    opened(sessions)  # fills what all logs share
    gc.collect()
    tracemalloc.start()
    kept = opened(sessions)
    gc.collect()
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    sys.stdout.write(f"{used_bytes / sessions:.0f}\n")


if __name__ == "__main__":
    main()
