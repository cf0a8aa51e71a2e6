"""What the wrapper says on the standard error that it shares with the server; it never waits for whoever reads it."""

from __future__ import annotations

import os
import select
from collections import deque

_STDERR = 2
_MOST_WAITING = 100


class Stderr:
    """Writes whole lines while the reader takes them. Lines that it does not take wait, up to a hundred of them."""

    def __init__(self, descriptor: int = _STDERR) -> None:
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque(maxlen=_MOST_WAITING)
        self._said: set[str] = set()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def say(self, text: str) -> None:
        """Write `text` behind the program's name, unless it was said before; now or as soon as it can be."""
        if text not in self._said:
            self._said.add(text)
            self.write(f"otel-bridge: {text}")

    def write(self, line: str) -> None:
        """Write a line (without its newline), now or as soon as it can be."""
        # What poll() says can be written is this much; more could make the write wait.
        self._waiting.append(line.encode(errors="replace")[: select.PIPE_BUF - 1] + b"\n")
        self.flush()

    def flush(self) -> None:
        """Write what waits, as far as it is taken now."""
        while self._waiting and (found := self._poll.poll(0)):
            if not found[0][1] & select.POLLOUT:
                self._waiting.clear()  # nobody reads it any more, or it is closed
                return
            try:
                os.write(self._descriptor, self._waiting[0])
            except OSError:
                self._waiting.clear()
                return
            self._waiting.popleft()
