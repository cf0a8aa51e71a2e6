"""Which server processes write a log, and whether they have all ended.

A pid in a file's name says nothing (containers, reuse): only a process that this bridge saw alive, by its start time,
with this file open, can be said to have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from otel_bridge.sources.processes import Process, is_alive


class Writers(Enum):
    """What is known of the processes that write a log."""

    UNKNOWN = "unknown"
    ALIVE = "alive"
    ENDED = "ended"


@dataclass(slots=True)
class LogWriters:
    """The processes that were seen holding one log open."""

    seen: set[Process] = field(default_factory=set)

    def saw(self, holding: Iterable[Process]) -> bool:
        """Notes who holds the log now; whether somebody is new."""
        before = len(self.seen)
        self.seen.update(holding)
        return len(self.seen) > before

    def state(self) -> Writers:
        """Looks at the processes once more; ENDED is said once for those that were seen."""
        if not self.seen:
            return Writers.UNKNOWN
        if any(is_alive(process) for process in self.seen):
            return Writers.ALIVE
        self.seen.clear()
        return Writers.ENDED

    def to_json(self) -> list[list[int]]:
        """What was seen, as JSON values."""
        return [[process.pid, process.start_time] for process in sorted(self.seen)]

    @classmethod
    def from_json(cls, saved: object) -> LogWriters:
        """The inverse of `to_json`; None, which logs have that nobody was seen to write, is empty. Raises TypeError."""
        if saved is None:
            return cls()
        if not isinstance(saved, list):
            raise TypeError("the writers of a log are no list")
        return cls({Process(int(pid), int(start_time)) for pid, start_time in saved})
