"""The pump's end of the pipe to the worker: a bounded queue that never makes the pump wait."""

from __future__ import annotations

import os
from collections import deque

from otel_bridge.entries.frame import Direction, Frame, Gap
from otel_bridge.wrapper.records import Record, packed

MAX_WAITING_BYTES = 16 << 20


class Feed:
    """Hands records to the worker. What it does not take yet waits here, at most `max_waiting_bytes` of it.

    Frames beyond that are dropped and counted; the worker is told of them, as a gap, once there is room again.
    """

    def __init__(self, descriptor: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        """`descriptor` is the writing end of a pipe; it becomes non-blocking, and is closed by `close`.

        -1 makes a feed that is closed from the beginning.
        """
        if descriptor >= 0:
            os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.dropped_frames = 0
        self._max_waiting_bytes = max_waiting_bytes
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._gaps: dict[Direction, Gap] = {}

    @property
    def is_open(self) -> bool:
        """Whether there is a worker to hand anything to, as far as is known."""
        return self.descriptor >= 0

    @property
    def is_waiting(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._waiting)

    def frame(self, frame: Frame) -> None:
        """Hand over a frame, or count it where there is no room for it."""
        if not self.is_open:
            return
        self._tell_gap(frame.direction)
        record = packed(frame)
        if frame.direction in self._gaps or self._waiting_bytes + len(record) > self._max_waiting_bytes:
            self._drop(frame)
        else:
            self._put(record)
        self.flush()

    def tell(self, record: Record) -> None:
        """Hand over a record that must not be dropped."""
        if self.is_open:
            for direction in list(self._gaps):
                self._tell_gap(direction, always=True)
            self._put(packed(record))
            self.flush()

    def _drop(self, frame: Frame) -> None:
        self.dropped_frames += 1
        gap = self._gaps.get(frame.direction)
        first_ns, frames, size_bytes = (gap.first_ns, gap.frames, gap.size_bytes) if gap else (frame.time_ns, 0, 0)
        self._gaps[frame.direction] = Gap(
            frame.direction, first_ns, frame.time_ns, frames + 1, size_bytes + frame.size_bytes
        )

    def _tell_gap(self, direction: Direction, *, always: bool = False) -> None:
        """Hand over what was dropped once half the room is free, so that a full queue does not drop every other."""
        if direction in self._gaps and (always or self._waiting_bytes <= self._max_waiting_bytes // 2):
            self._put(packed(self._gaps.pop(direction)))

    def _put(self, record: bytes) -> None:
        self._waiting.append(memoryview(record))
        self._waiting_bytes += len(record)

    def flush(self) -> None:
        """Write what the pipe takes now. When nobody reads it any more, the feed is closed."""
        while self._waiting and self.is_open:
            try:
                written = os.write(self.descriptor, self._waiting[0])
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            self._waiting_bytes -= written
            rest = self._waiting[0][written:]
            if rest:
                self._waiting[0] = rest
            else:
                self._waiting.popleft()

    def close(self) -> None:
        """Close the pipe; what waits is dropped. Closing twice is allowed."""
        if self.is_open:
            os.close(self.descriptor)
            self.descriptor = -1
        self._waiting.clear()
        self._waiting_bytes = 0
