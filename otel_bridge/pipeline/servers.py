"""Which server processes write a log, and whether they have all ended.

A pid in a file's name says nothing (containers, reuse): only a process that this bridge saw alive, by its start time,
with this file open, can be said to have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import Enum

from otel_bridge.sources.processes import Process, has_ended


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
        if not all(has_ended(process) for process in self.seen):
            return Writers.ALIVE
        self.seen.clear()
        return Writers.ENDED

    def to_json(self) -> list[dict[str, object]]:
        """What was seen, as JSON values."""
        return [asdict(process) for process in sorted(self.seen, key=lambda process: process.pid)]

    @classmethod
    def from_json(cls, saved: object) -> LogWriters:
        """The inverse of `to_json`; None is empty: nobody was seen. Raises TypeError or ValueError."""
        if saved is None:
            return cls()
        if not isinstance(saved, list):
            raise TypeError("the writers of a log are no list")
        return cls({Process.from_json(process) for process in saved})
