"""The receiver as a test sees it: what arrived, and waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Self

from otel_bridge.sessions.span import Span
from otel_bridge.testing.server import CannedReply, Request, Server

Replies = Iterable[CannedReply] | Callable[[Request], CannedReply]


class Receiver:
    """An OTLP/HTTP trace backend on a loopback port, alive between `__enter__` and `__exit__`.

    `replies` is what it answers: each reply once, in order, and 200 after the last; or a function from request to
    reply, which is called in the thread of the connection. Without it, every well-formed request gets a 200.
    `port` 0 takes a free one; a number takes that one, as for a backend that comes back after an outage.

    `__enter__` raises OSError when the port is taken.
    """

    def __init__(self, replies: Replies = (), *, port: int = 0) -> None:
        self._port = port
        self._reply_to = replies if callable(replies) else _in_order(replies)
        self._changed = threading.Condition(threading.RLock())
        self._requests: list[Request] = []
        self._arrived: list[Span] = []
        self._distinct: dict[tuple[int, int], list[Span]] = {}
        self._closing = threading.Event()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._closing.clear()
        self._server = Server(self._answer, self._port)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="otlp-receiver")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, cut every open connection, and wait for the threads; what arrived can still be read."""
        if self._server is None or self._thread is None:
            return
        self._closing.set()
        self._server.shutdown()
        self._server.cut_connections()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    @property
    def port(self) -> int:
        """The port that it listens on; 0 until it was entered, if none was given."""
        return self._port

    @property
    def endpoint(self) -> str:
        """The base URL, as in `OTEL_EXPORTER_OTLP_ENDPOINT`: without `/v1/traces`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[Request]:
        """Every POST in order of arrival, also the refused ones."""
        with self._changed:
            return list(self._requests)

    @property
    def spans(self) -> list[Span]:
        """The accepted spans (those answered with a 2xx), each once.

        A span that was sent again with the same content counts once, as a backend shows it; one id with two contents
        gives two spans, so that a test sees the contradiction.
        """
        with self._changed:
            return [span for spans in self._distinct.values() for span in spans]

    @property
    def arrived(self) -> list[Span]:
        """The accepted spans as they came: a span that was sent twice is here twice."""
        with self._changed:
            return list(self._arrived)

    def wait_for(self, predicate: Callable[[Receiver], object], timeout_s: float = 10.0) -> None:
        """Return as soon as `predicate(self)` is true; it is asked now and after every request.

        Raises TimeoutError, which says what had arrived, after `timeout_s` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: bool(predicate(self)), timeout_s):
                raise TimeoutError(
                    f"not within {timeout_s:g} s; {len(self._requests)} requests had arrived, "
                    f"{len(self._arrived)} spans of them accepted"
                )

    def _answer(self, request: Request, flaw: CannedReply | None) -> CannedReply:
        """Choose the reply, wait as long as it asks for, and file the request."""
        reply = flaw or self._reply_to(request)
        if reply.delay_s and self._closing.wait(reply.delay_s):
            reply = replace(reply, hang_up=True)  # not due yet: the client gets no answer, so nothing was accepted
        with self._changed:
            self._requests.append(request)
            if 200 <= reply.status < 300 and not reply.hang_up:
                for span in request.spans:
                    self._arrived.append(span)
                    same_id = self._distinct.setdefault((span.trace_id, span.span_id), [])
                    if span not in same_id:
                        same_id.append(span)
            self._changed.notify_all()
        return reply


def _in_order(replies: Iterable[CannedReply]) -> Callable[[Request], CannedReply]:
    rest = iter(replies)
    lock = threading.Lock()

    def next_reply(_: Request) -> CannedReply:
        with lock:
            return next(rest, CannedReply())

    return next_reply
