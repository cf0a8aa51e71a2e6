"""The bounded queue between a host's threads and the bridge's: putting never waits, what does not fit is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import NamedTuple

from otel_bridge.entries.flaw import Flaw

MAX_BYTES = 64 * 1024 * 1024
"""So much the queue holds at most, however few its entries are; a full one of usual entries has a tenth of it."""


class IntakeCounts(NamedTuple):
    """What became of all that was put in: `accepted` lines, `queued` ones of them, `dropped` ones, and `malformed`.

    `flaw` is what was wrong with the last malformed one.
    """

    accepted: int
    queued: int
    dropped: int
    malformed: int
    flaw: str


class Intake:
    """Takes lines from any thread. The lock is held for moments only, and may be taken again by its own thread:

    a signal handler or a destructor can log an entry in the middle of another one.
    """

    def __init__(self, max_entries: int) -> None:
        self.max_entries = max_entries
        self.renew()

    def renew(self) -> list[bytes]:
        """Begin anew, with new locks: in a forked child those of the parent may be held by threads it does not have.

        Gives the lines that were queued.
        """
        lines = list(getattr(self, "_lines", ()))
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._lines: deque[bytes] = deque()
        self._size_bytes = 0
        self._accepted = self._taken = self._settled = self._urgent = self._dropped = 0
        self._malformed: Counter[str] = Counter()
        self._flaw = ""
        self._is_awaited = False  # the bridge's thread sleeps until something comes
        self._is_closed = False
        return lines

    # What follows is for the host's threads.

    def put(self, line: bytes) -> None:
        """Queue a line, or count it as dropped if there is no room or the intake is closed."""
        with self.lock:
            size_bytes = self._size_bytes + len(line)
            if self._is_closed or len(self._lines) >= self.max_entries or size_bytes > MAX_BYTES:
                self._dropped += 1
            else:
                self._lines.append(line)
                self._size_bytes = size_bytes
                self._accepted += 1
            if self._is_awaited:
                self._changed.notify_all()

    def count_malformed(self, flaw: Flaw | str) -> None:
        """Count something that looked like an entry and is none."""
        with self.lock:
            self._malformed[str(flaw)] += 1
            self._flaw = str(flaw)
            if self._is_awaited:
                self._changed.notify_all()

    def wait_until_settled(self, timeout_s: float) -> bool:
        """Have the lines that are queued now taken at once, and wait until they are; False if that takes too long."""
        with self.lock:
            target = self._urgent = self._accepted
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target or self._is_closed, timeout_s) and (
                self._settled >= target
            )

    def close(self) -> None:
        """Accept nothing more. What is queued can still be taken."""
        with self.lock:
            self._is_closed = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Close, and count as dropped what nobody will take any more."""
        with self.lock:
            self._dropped += len(self._lines)
            self._lines.clear()
            self._size_bytes = 0
            self.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def is_empty(self) -> bool:
        """Whether nothing is queued at this moment."""
        return not self._lines

    def counts(self) -> IntakeCounts:
        """The numbers of this moment."""
        with self.lock:
            return IntakeCounts(self._accepted, len(self._lines), self._dropped, self._malformed.total(), self._flaw)

    # What follows is for the bridge's thread.

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for lines; False if there are none: after `timeout_s`, at something to say, or at the close."""
        with self.lock:
            if not self._lines and not self._is_closed:
                self._is_awaited = True
                self._changed.wait(timeout_s)
                self._is_awaited = False
            return bool(self._lines)

    def linger(self, quiet_s: float, max_s: float) -> None:
        """Let lines collect until none came for `quiet_s`, but no longer than `max_s`.

        It ends sooner when half of the room is taken, or when somebody waits for what is there.
        """
        end_s = time.monotonic() + max_s
        with self.lock:
            while not self._is_closed and not self.is_urgent and len(self._lines) * 2 < self.max_entries:
                accepted = self._accepted
                self._changed.wait(min(quiet_s, max(0.0, end_s - time.monotonic())))
                if self._accepted == accepted or time.monotonic() >= end_s:
                    return

    @property
    def is_urgent(self) -> bool:
        """Whether somebody waits for lines that are not settled."""
        return self._settled < self._urgent

    def take(self, max_lines: int) -> list[bytes]:
        """The oldest lines."""
        with self.lock:
            lines = [self._lines.popleft() for _ in range(min(max_lines, len(self._lines)))]
            self._size_bytes -= sum(map(len, lines))
            self._taken += len(lines)
            return lines

    def settle(self) -> None:
        """All lines that were taken have been dealt with."""
        with self.lock:
            self._settled = self._taken
            self._changed.notify_all()
