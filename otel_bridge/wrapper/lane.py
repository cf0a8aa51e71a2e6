"""One direction of the pipe: what is read at one end is written at the other, unchanged, in order, at once."""

from __future__ import annotations

import os
import select

from otel_bridge.entries.frame import Direction

READ_BYTES = 1 << 16


class Lane:
    """Moves bytes from `source` to `target` and never waits: the caller asks `poll` what is ready.

    Nothing is read while the target has not taken what was read before, so a slow reader slows the writer down, as it
    would without the wrapper. When one end is closed, the other is closed too: at the end of the input as soon as all
    of it is written, after a failed write at once.

    `is_shared` says that the target's description is another process's too (a terminal, the pipe of whoever started
    us): it must not become non-blocking, so only as much is written at once as `poll` says fits.
    """

    def __init__(self, direction: Direction, source: int, target: int, *, is_shared: bool) -> None:
        self.direction = direction
        self.source = source
        self.target = target
        self._pending = memoryview(b"")
        self._shared = select.poll() if is_shared else None
        if self._shared is not None:
            self._shared.register(target, select.POLLOUT)
        else:
            os.set_blocking(target, False)

    @property
    def is_pending(self) -> bool:
        """Whether something was read and not written yet."""
        return bool(self._pending)

    @property
    def is_over(self) -> bool:
        """Whether both ends are closed."""
        return self.source < 0 and self.target < 0

    def read(self) -> bytes:
        """Read once from a source that is ready, for `write` to pass on; empty at its end, which closes it."""
        try:
            data = os.read(self.source, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:  # a connection that was reset, a terminal that was hung up: no more will come
            data = b""
        if data:
            self._pending = memoryview(data)
        else:
            self.close()
        return data

    def write(self) -> None:
        """Write what the target takes now."""
        while self._pending and self.target >= 0:
            try:
                if self._shared is None:
                    written = os.write(self.target, self._pending)
                elif self._shared.poll(0):
                    written = os.write(self.target, self._pending[: select.PIPE_BUF])
                else:
                    return
            except BlockingIOError:
                return
            except OSError:  # nobody reads it any more; the source's writer is to learn it as it would without us
                self._pending = memoryview(b"")
                self.close()
                return
            self._pending = self._pending[written:]

    def close(self) -> None:
        """Close both ends. The end of the input is only read once all before it is written, so nothing waits then."""
        self.source = _let_go(self.source)
        self.target = _let_go(self.target)

    def abandon(self) -> None:
        """Close both ends, whatever waits."""
        self._pending = memoryview(b"")
        self.close()


def _let_go(descriptor: int) -> int:
    """Close a descriptor; of the standard ones the number is kept taken, so that nothing else gets it by accident."""
    if descriptor > 2:
        os.close(descriptor)
    elif descriptor >= 0:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    return -1
