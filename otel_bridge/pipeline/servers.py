"""Which server processes write a log, and whether they have all ended.

A pid in a file's name says nothing (containers, reuse): only a process that this bridge saw alive, by its start time,
with this file open, can be said to have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from otel_bridge.sources.files import FileKey
from otel_bridge.sources.processes import Process


class Writers(Enum):
    """What is known of the processes that write a log."""

    UNKNOWN = "unknown"
    ALIVE = "alive"
    ENDED = "ended"


@dataclass(slots=True)
class LogWriters:
    """The processes seen holding one log open."""

    seen: set[Process] = field(default_factory=set)

    def check(
        self,
        files: Iterable[FileKey],
        holders: Callable[[FileKey], frozenset[Process]],
        is_alive: Callable[[Process], bool],
    ) -> Writers:
        """Looks once; ENDED is said once for each set of processes that was seen."""
        holding = frozenset().union(*(holders(key) for key in files))
        self.seen |= holding
        if not self.seen:
            return Writers.UNKNOWN
        if holding or any(is_alive(process) for process in self.seen):
            return Writers.ALIVE
        self.seen.clear()
        return Writers.ENDED

    def to_json(self) -> list[list[object]]:
        """What was seen, as JSON values."""
        return [[process.pid, process.start_time] for process in sorted(self.seen, key=lambda one: one.pid)]
