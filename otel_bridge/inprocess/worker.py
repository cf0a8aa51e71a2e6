"""The bridge's own thread: lines out of the intake, through the mapping, into the sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from otel_bridge.entries.decoding import decode_line
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.flaw import Flaw
from otel_bridge.inprocess.announcements import LOGGER, Announcements
from otel_bridge.inprocess.intake import Intake
from otel_bridge.inprocess.sinks import MAX_SPANS, Sink, SinkCounts
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span

QUIET_S = 0.02
MAX_LINGER_S = 0.5
"""A host that logs one entry after the other has the interpreter to itself until it pauses, for half a second at
most."""

STEP_LINES = 32
PAUSE_S = 0.001
"""A step of so many entries keeps the interpreter for about a millisecond; the host has it for as long after each."""

ROOM_S = 1.0
GRACE_MS = 5_000
"""Beyond the idle timeout, as `tail` has it: an entry that was stamped in time and handed over late comes first."""


class Worker:
    """Runs from `start` until the intake is closed and empty, or the deadline has passed.

    `inherited` are lines that a forked child found in its parent's intake: the parent sends what they become, the child
    only has to know of it. `open_sink` is called in the thread.
    """

    def __init__(
        self,
        intake: Intake,
        mapping: LogMapping,
        open_sink: Callable[[Announcements], Sink],
        announcements: Announcements,
        inherited: list[bytes] | None,
    ) -> None:
        self.mapping = mapping
        self.inherited = inherited
        self.mapping_lock = threading.Lock()
        self.made_spans = 0
        self.deadline_s: float | None = None  # of time.monotonic, set at the close
        self.sink: Sink | None = None
        self._intake = intake
        self._open_sink = open_sink
        self._announcements = announcements
        self._read_ms = 0
        self._thread = threading.Thread(target=self._run, name="otel-bridge", daemon=True)

    def start(self) -> None:
        """Begin. Raises RuntimeError when the interpreter is about to end."""
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """The thread's identifier."""
        return self._thread.ident

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False if it took longer than `timeout_s`."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def counts(self) -> SinkCounts:
        """The sink's numbers."""
        return self.sink.counts() if self.sink is not None else SinkCounts()

    # What follows runs in the thread.

    def _run(self) -> None:
        try:
            self._forget_inherited()
            self.sink = self._open_sink(self._announcements)
            self._work(self.sink)
        except BaseException:  # noqa: BLE001, nobody else would hear of it
            LOGGER.exception("the bridge stopped by a mistake of its own; entries are dropped from now on")
        finally:
            self._intake.abandon()

    def _forget_inherited(self) -> None:
        """End, unsent, what the parent of this process will end: it goes on in the same traces if it comes here."""
        with self.mapping_lock:
            if self.inherited is not None:
                self.mapping.take(self._items(self.inherited))
                self.mapping.server_gone()
                self.inherited = None

    def _work(self, sink: Sink) -> None:
        pending: list[Span] = []
        is_behind = False
        while not self._is_over():
            if self._intake.wait(self._silence_s()):
                self._intake.linger(*((PAUSE_S, PAUSE_S) if is_behind else (QUIET_S, MAX_LINGER_S)))
                pending += self._map_step()
            else:
                pending += self._pass_time()
            if self._intake.is_empty or self._intake.is_urgent or len(pending) >= MAX_SPANS:
                if not self._send(sink, pending):
                    break
                pending = []
                self._intake.settle()
            is_behind = not self._intake.is_empty
            self._say()
        self._send(sink, [*pending, *self._end_all()])
        sink.close(self._left_s())

    def _is_over(self) -> bool:
        return self._intake.is_closed and (self._intake.is_empty or self._left_s() == 0)

    def _left_s(self) -> float:
        return max(0.0, self.deadline_s - time.monotonic()) if self.deadline_s is not None else ROOM_S

    def _map_step(self) -> list[Span]:
        # Taking and mapping are one for a fork, so that the child knows of every entry by the one or by the other.
        with self.mapping_lock:
            spans = self.mapping.take(self._items(self._intake.take(STEP_LINES)))
            self.mapping.touched.clear()
        self._read_ms = _now_ms()
        self.made_spans += len(spans)
        return spans

    def _items(self, lines: Iterable[bytes]) -> Iterable[Entry | StateChange]:
        for line in lines:
            item = decode_line(line)
            if isinstance(item, Flaw):
                self._intake.count_malformed(item)
            elif item is not None:
                yield item

    def _silence_s(self) -> float | None:
        """How long nothing may come until what is open counts as over; None if nothing is open."""
        return max(0.0, (self._silent_at_ms() - _now_ms()) / 1000) if self.mapping.has_open else None

    def _silent_at_ms(self) -> int:
        return max(self.mapping.latest_ms, self._read_ms) + self.mapping.options.idle_timeout_ms + GRACE_MS

    def _pass_time(self) -> list[Span]:
        return self._end_all() if self.mapping.has_open and _now_ms() >= self._silent_at_ms() else []

    def _end_all(self) -> list[Span]:
        with self.mapping_lock:
            spans = self.mapping.server_gone()
        self.made_spans += len(spans)
        return spans

    def _send(self, sink: Sink, spans: Sequence[Span]) -> bool:
        """Hand everything to the sink; False if it has no room before the deadline."""
        for start in range(0, len(spans), MAX_SPANS):
            while not sink.wait_for_room(min(ROOM_S, self._left_s())):
                self._say()
                if self._left_s() == 0:
                    return False
            sink.send(spans[start : start + MAX_SPANS])
        return True

    def _say(self) -> None:
        say_counts(self._intake, self._announcements)


def say_counts(intake: Intake, announcements: Announcements, *, is_last: bool = False) -> None:
    """Say what was dropped and what was malformed, if that is more than was said."""
    counts = intake.counts()
    announcements.count(
        "dropped",
        counts.dropped,
        f"entries dropped, for the queue of {intake.max_entries:,} is full or the program ended: {{}}",
        is_last=is_last,
    )
    announcements.count(
        "malformed", counts.malformed, f"entries skipped (the last one: {counts.flaw}): {{}}", is_last=is_last
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
