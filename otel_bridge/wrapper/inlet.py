"""The worker's end of the pipe from the pump."""

from __future__ import annotations

import os
import select
import time
from collections import deque

from otel_bridge.wrapper.records import Record, RecordReader

_READ_BYTES = 1 << 18
_AT_ONCE_BYTES = 4 << 20


class Inlet:
    """Reads records. `is_over` once the pump has closed its end, or is gone, and all that it wrote is read."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._reader = RecordReader()
        self._records: deque[Record] = deque()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.is_over = False

    @property
    def is_ending(self) -> bool:
        """Whether the pump will write no more, though not all that it wrote may be read."""
        return self.is_over or any(events & select.POLLHUP for _, events in self._poll.poll(0))

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is something to read; False if that took longer than `timeout_s`."""
        if self.is_over:
            return False
        return bool(self._records or self._poll.poll(timeout_s * 1000))

    def take(self) -> list[Record]:
        """All records that are there now, up to some megabytes of them."""
        size_bytes = 0
        while not self.is_over and size_bytes < _AT_ONCE_BYTES:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                break
            self._records += self._reader.feed(data)
            size_bytes += len(data)
            self.is_over = not data
        records = list(self._records)
        self._records.clear()
        return records

    def first(self, timeout_s: float) -> Record | None:
        """The first record; None when the pipe ends without one, or it does not come in time."""
        end_s = time.monotonic() + timeout_s
        while not self._records and not self.is_over and (left_s := end_s - time.monotonic()) > 0:
            if self.wait(left_s):
                self._records += self.take()
        return self._records.popleft() if self._records else None
