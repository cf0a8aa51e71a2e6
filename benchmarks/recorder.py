"""A thin pass-through before a backend that notes when the backend acknowledged what a person can find again.

It relays bytes and reads along: which marks (`mark`) a request holds, and when the backend's own `200` for it came
back. What it adds is one copy over loopback in each direction, below 0.2 ms together, and it is counted as the
bridge's. Requests must not be compressed, and a connection has one request at a time, as with HTTP/1.1.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_MARK = re.compile(rb"probe-[a-z]+-\d{6}")
_MARK_BYTES = 32
_DEADLINE_S = 60.0


def mark(kind: str, number: int) -> str:
    """A text that a `Recorder` finds wherever it stands in a request; `kind` is a few small letters."""
    return f"probe-{kind}-{number:06}"


@dataclass(slots=True)
class Recorder:
    """What was acknowledged so far, and when, in seconds of `time.perf_counter`."""

    endpoint: str
    _acknowledged_s: dict[str, float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def acknowledged_s(self, wanted: str) -> float:
        """When the backend acknowledged the request with this mark; waits for it. RuntimeError when it never does."""
        with self._changed:
            if not self._changed.wait_for(lambda: wanted in self._acknowledged_s, _DEADLINE_S):
                raise RuntimeError(f"{wanted} was not acknowledged within {_DEADLINE_S:g} s")
            return self._acknowledged_s[wanted]

    def serve(self, listener: socket.socket, upstream: tuple[str, int]) -> None:
        """Relays every connection until the listener is closed. Meant to be a thread's target."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            backend = socket.create_connection(upstream)
            for one in (client, backend):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked: list[bytes] = []
            for relay in (self._requests, self._replies):
                threading.Thread(target=relay, args=(client, backend, asked), daemon=True).start()

    def _requests(self, client: socket.socket, backend: socket.socket, asked: list[bytes]) -> None:
        seen = b""
        with _closing(client, backend):
            while data := client.recv(1 << 16):
                seen = seen[-_MARK_BYTES:] + data  # a mark may be cut by the end of what was read
                asked += _MARK.findall(seen)
                backend.sendall(data)

    def _replies(self, client: socket.socket, backend: socket.socket, asked: list[bytes]) -> None:
        with _closing(client, backend):
            while data := backend.recv(1 << 16):
                now_s = time.perf_counter()
                if data.startswith(b"HTTP/1.1 200"):
                    with self._changed:
                        self._acknowledged_s |= {found.decode(): now_s for found in asked}
                        self._changed.notify_all()
                    asked.clear()
                client.sendall(data)


@contextmanager
def recorder(backend: str) -> Iterator[Recorder]:
    """A recorder before the backend with this base URL, for as long as the block runs."""
    address = urlsplit(backend)
    assert address.hostname is not None
    assert address.port is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        recording = Recorder(f"http://127.0.0.1:{listener.getsockname()[1]}")
        upstream = (address.hostname, address.port)
        thread = threading.Thread(target=recording.serve, args=(listener, upstream), daemon=True)
        thread.start()
        try:
            yield recording
        finally:
            listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def _closing(*sockets: socket.socket) -> Iterator[None]:
    """Ends both sides when one has ended."""
    with contextlib.suppress(OSError):
        yield
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
