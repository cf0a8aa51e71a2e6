"""Backends that behave as `otel_bridge.testing.Receiver` cannot: raw bytes, TLS, gRPC."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import parse_headers
from pathlib import Path
from typing import Any

import grpc

from otel_bridge.export.grpc_transport import EXPORT_METHOD
from otel_bridge.settings import ExportSettings, resolve_export_settings


def settings(endpoint: str = "", environ: Mapping[str, str] | None = None, **flags: Any) -> ExportSettings:
    """Settings from flags and a given environment, never from the real one."""
    return resolve_export_settings(environ or {}, endpoint=endpoint or None, **flags)


def eventually(condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    """Ask again and again until `condition` holds; False if it does not within `timeout_s`."""
    deadline_s = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        pause.wait(0.01)
    return True


@contextmanager
def raw_server(
    answer: bytes | None, *, before: bytes = b"", drop: bytes = b"", tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A server on a loopback port that answers each request with `answer` and hangs up; None: it never answers.

    With `before` that is the answer to the first request of a connection, `answer` the one to the second. With a `drop`
    it sends that after the answer, again and again, for as long as the client stays.
    """
    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    open_sockets: list[socket.socket] = []

    def serve() -> None:
        while not is_over.is_set():
            try:
                connection, _ = listener.accept()
                connection.settimeout(10)
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                open_sockets.append(connection)
                if before:
                    _read_request(connection)
                    connection.sendall(before)
                connection.recv(65536)
                if answer is not None:
                    connection.sendall(answer)
                    while drop and not is_over.wait(0.02):
                        connection.sendall(drop)
                    # What is left unread would turn the end of the connection into a reset.
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                    connection.close()
            except OSError:
                continue  # the listener was closed, or the client refused the certificate

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in open_sockets:
            one.close()
        thread.join(10)


def _read_request(connection: socket.socket) -> None:
    with connection.makefile("rb") as file:
        file.readline()
        file.read(int(parse_headers(file)["content-length"]))


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key, as PEM files."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


GrpcAnswer = Callable[[bytes, grpc.ServicerContext], bytes]


@contextmanager
def grpc_server(
    answer: GrpcAnswer, credentials: grpc.ServerCredentials | None = None, *, address: str = "127.0.0.1:0"
) -> Iterator[str]:
    """A gRPC server whose trace service answers with `answer(request bytes, context)`; gives its `host:port`."""
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answer)
    service, method = EXPORT_METHOD[1:].split("/")
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
