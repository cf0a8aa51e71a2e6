"""The HTTP half of the receiver: sockets, threads, and what a POST to an OTLP backend looks like."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from otel_bridge.sessions.span import Span
from otel_bridge.testing.decoding import decode_spans

TRACES_PATH = "/v1/traces"
PROTOBUF = "application/x-protobuf"
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One POST that arrived. Header names are in lower case, `body` is unpacked, `spans` is empty if it is no OTLP."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CannedReply:
    """What the receiver answers: after `delay_s` seconds, or not at all (`hang_up` closes the connection instead).

    A receiver that is closed before the delay is over gives no answer either.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hang_up: bool = False


Answer = Callable[[Request, CannedReply | None], CannedReply]
"""From a request, and the refusal that its form already earned if it did, to the reply."""


class Server(ThreadingHTTPServer):
    # Threads are joined at the close, so that none outlives a test; that is why connections are cut first.
    daemon_threads = False
    block_on_close = True

    def __init__(self, answer: Answer, port: int) -> None:
        self.answer = answer
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        # HTTPServer asks the name service for this host's name here, which can hang for seconds.
        TCPServer.server_bind(self)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"  # connections stay open, as a real backend's do

    def handle(self) -> None:
        # A client that is killed between two requests resets the connection.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        try:
            body = self._read_body()
        except OSError:
            self.close_connection = True
            return
        reply = self.server.answer(*self._request(body))
        if reply.hang_up:
            self.close_connection = True
            return
        try:
            self._send(reply)
        except OSError:
            self.close_connection = True  # the client gave up waiting

    def _read_body(self) -> bytes | None:
        """The body as sent, or None when its length is not said or too large (then the connection cannot be kept).

        Raises ConnectionError when the client left in the middle of it.
        """
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionResetError("the connection ended inside the body")
        return body

    def _request(self, sent: bytes | None) -> tuple[Request, CannedReply | None]:
        """The request as a value, and the reply of a backend that cannot read it, if it cannot."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = b""
        spans: tuple[Span, ...] = ()
        flaw: CannedReply | None = None
        try:
            if sent is None:
                flaw = CannedReply(413 if "content-length" in headers else 411)
            elif self.path != TRACES_PATH:
                body, flaw = sent, CannedReply(404)
            elif headers.get("content-type", "").split(";")[0] != PROTOBUF:
                body, flaw = sent, CannedReply(415)
            else:
                body = gzip.decompress(sent) if headers.get("content-encoding") == "gzip" else sent
                spans = decode_spans(body)
        except (ValueError, OSError, EOFError, zlib.error) as error:
            flaw = CannedReply(400, str(error).encode())
        return Request(self.path, headers, body, spans), flaw

    def _send(self, reply: CannedReply) -> None:
        self.send_response_only(reply.status)
        names = {name.lower() for name in reply.headers}
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "content-type" not in names:
            self.send_header("Content-Type", PROTOBUF if reply.status == 200 else "text/plain")
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the base class names it
        """Say nothing: what arrived is asked of the receiver, and headers may hold secrets."""
