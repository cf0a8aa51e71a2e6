from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_bridge.errors import SettingError
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.grpc_transport import EXPORT_METHOD, GrpcTransport
from otel_bridge.export.reply import GrpcReply, NotSent, Reply
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.export.verdict import Delivered, Misconfigured, PartlyRefused, Refused, TooLarge, TryLater, judge
from otel_bridge.settings import ExportSettings
from otel_bridge.testing import decode_spans
from tests.export.backends import eventually, grpc_server, make_certificate, raw_server, settings
from tests.export.spans import span

BODY = RequestEncoder(Resource({"service.name": "x"}), Scope()).encode([SpanEncoder().encode(span(1))])


def grpc_settings(endpoint: str, environ: dict[str, str] | None = None, **flags: object) -> ExportSettings:
    return settings(endpoint, environ, protocol="grpc", **flags)


def send(chosen: ExportSettings) -> Reply:
    transport = GrpcTransport(chosen)
    try:
        return transport.send(BODY)
    finally:
        transport.close()


def aborting(code: grpc.StatusCode, details: str = "no", **metadata: bytes) -> Callable[[bytes, object], NoReturn]:
    def answer(_: bytes, context: grpc.ServicerContext) -> NoReturn:
        context.set_trailing_metadata(tuple((name.replace("_", "-"), value) for name, value in metadata.items()))
        context.abort(code, details)

    return answer  # type: ignore[return-value]


def test_the_method_is_the_generated_stubs() -> None:
    """The name of the method is the one that OTLP's generated stub calls."""
    names: list[str] = []

    class Channel:
        def unary_unary(self, method: str, **_: object) -> None:
            names.append(method)

    trace_service_pb2_grpc.TraceServiceStub(Channel())  # type: ignore[no-untyped-call]

    assert names == [EXPORT_METHOD]


def test_body_arrives_as_it_is() -> None:
    """The bytes of the request are sent unchanged, with the headers as metadata; an OK comes back as such."""
    arrived: list[tuple[bytes, dict[str, str | bytes]]] = []

    def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
        arrived.append((body, dict(context.invocation_metadata())))
        return b""

    with grpc_server(answer) as target:
        reply = send(grpc_settings(f"http://{target}", headers=["X-Team=a b"]))

    assert reply == GrpcReply("OK")
    ((body, metadata),) = arrived
    assert body == BODY
    assert decode_spans(body) == (span(1),)
    assert metadata["x-team"] == "a b"


@pytest.mark.parametrize(("name", "expected"), [("gzip", grpc.Compression.Gzip), ("none", None)])
def test_compression(monkeypatch: pytest.MonkeyPatch, name: str, expected: grpc.Compression | None) -> None:
    """OTEL_EXPORTER_OTLP_COMPRESSION makes the channel pack its messages; the server unpacks them."""
    arrived: list[bytes] = []
    chosen: list[object] = []
    make_channel = grpc.insecure_channel

    def recorded(target: str, options: object, compression: object) -> grpc.Channel:
        chosen.append(compression)
        return make_channel(target, options, compression)  # type: ignore[arg-type]

    def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
        arrived.append(body)
        return b""

    monkeypatch.setattr(grpc, "insecure_channel", recorded)
    with grpc_server(answer) as target:
        reply = send(grpc_settings(f"http://{target}", {"OTEL_EXPORTER_OTLP_COMPRESSION": name}))

    assert reply == GrpcReply("OK")
    assert (arrived, chosen) == ([BODY], [expected])


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (grpc.StatusCode.UNAVAILABLE, TryLater),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, TooLarge),
        (grpc.StatusCode.INVALID_ARGUMENT, Refused),
        (grpc.StatusCode.UNAUTHENTICATED, Misconfigured),
    ],
)
def test_codes(code: grpc.StatusCode, verdict: type) -> None:
    """The code and the text of a failure come back, and each is sent once."""
    with grpc_server(aborting(code, "no\x1b[1m")) as target:
        reply = send(grpc_settings(f"http://{target}"))

    assert reply == GrpcReply(code.name, "no\x1b[1m")
    assert isinstance(judge(reply), verdict)


def retry_info(seconds: int, nanos: int) -> RetryInfo:
    info = RetryInfo()
    info.retry_delay.seconds = seconds
    info.retry_delay.nanos = nanos
    return info


def status_details() -> bytes:
    detail = Any()
    detail.Pack(retry_info(2, 500_000_000))
    return bytes(Status(code=8, message="busy", details=[Any(), detail]).SerializeToString())


@pytest.mark.parametrize(
    "metadata",
    [
        {"grpc_status_details_bin": status_details()},
        {"google.rpc.retryinfo_bin": retry_info(2, 500_000_000).SerializeToString()},
    ],
)
def test_retry_info(metadata: dict[str, bytes]) -> None:
    """A RetryInfo is found in the details of the status and in a trailer of its own."""
    with grpc_server(aborting(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", **metadata)) as target:
        reply = send(grpc_settings(f"http://{target}"))

    assert reply == GrpcReply("RESOURCE_EXHAUSTED", "busy", 2.5)
    assert judge(reply) == TryLater("gRPC RESOURCE_EXHAUSTED: busy", 2.5)


def test_details_that_are_none() -> None:
    """Trailers that cannot be read are as good as none."""
    with grpc_server(aborting(grpc.StatusCode.UNAVAILABLE, "x", grpc_status_details_bin=b"\xff\xff")) as target:
        assert send(grpc_settings(f"http://{target}")) == GrpcReply("UNAVAILABLE", "x")


def test_nobody_listens() -> None:
    """A refused connection is UNAVAILABLE, with its reason."""
    with grpc_server(lambda body, context: b"") as target:
        pass

    reply = send(grpc_settings(f"http://{target}"))

    assert isinstance(reply, GrpcReply)
    assert reply.code == "UNAVAILABLE"
    assert "refused" in reply.details


def test_comes_back() -> None:
    """A transport that lost its backend finds the next one at the same address without being made anew."""
    with grpc_server(lambda body, context: b"") as target:
        transport = GrpcTransport(grpc_settings(f"http://{target}"))
        replies = [transport.send(BODY)]
    replies.append(transport.send(BODY))
    with grpc_server(lambda body, context: b"", address=target):
        assert eventually(lambda: transport.send(BODY) == GrpcReply("OK"))
    transport.close()

    assert [isinstance(judge(reply), Delivered) for reply in replies] == [True, False]


def test_no_answer() -> None:
    """A server that does not answer is given up after the timeout of the variable, in seconds."""
    gone = threading.Event()

    def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.add_callback(gone.set)
        gone.wait(30)
        return b""

    with grpc_server(answer) as target:
        reply = send(grpc_settings(f"http://{target}", {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.3"}))

    assert isinstance(reply, GrpcReply)
    assert reply.code == "DEADLINE_EXCEEDED"


def test_tls(tmp_path: Path) -> None:
    """An unknown certificate is UNAVAILABLE, and taken once OTEL_EXPORTER_OTLP_CERTIFICATE names its authority."""
    certificate, key = make_certificate(tmp_path)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with grpc_server(lambda body, context: b"", credentials) as target:
        refused = send(grpc_settings(f"https://{target}"))
        taken = send(grpc_settings(f"https://{target}", {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate)}))

    assert isinstance(judge(refused), TryLater)
    assert isinstance(refused, GrpcReply)
    assert refused.details.startswith(
        "TLS: the certificate is not trusted (self signed certificate); OTEL_EXPORTER_OTLP"
    )
    assert isinstance(judge(taken), Delivered)


def test_http_port() -> None:
    """A port that answers with HTTP is said as such, with what to change, with and without TLS asked for."""
    with raw_server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        plain = send(grpc_settings(f"http://127.0.0.1:{port}"))
        with_tls = send(grpc_settings(f"https://127.0.0.1:{port}"))

    assert plain == GrpcReply(
        "UNAVAILABLE", "the answer is not gRPC (a port for OTLP over HTTP wants --protocol http/protobuf)"
    )
    assert with_tls == GrpcReply(
        "UNAVAILABLE", "the answer is not TLS (a port without TLS wants http://, not https://)"
    )


def test_plain_to_a_tls_port(tmp_path: Path) -> None:
    """http:// to a port that wants TLS is said as such, with what to change."""
    certificate, key = make_certificate(tmp_path)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with grpc_server(lambda body, context: b"", credentials) as target:
        reply = send(grpc_settings(f"http://{target}"))

    assert reply == GrpcReply("UNAVAILABLE", "the connection was closed without an answer (a TLS port wants https://)")


def test_files_that_hold_no_certificate(tmp_path: Path) -> None:
    """A certificate file without a certificate is an error with its name, before anything is sent."""
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")

    with pytest.raises(SettingError, match=r"empty\.pem holds no PEM block"):
        GrpcTransport(grpc_settings("https://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(empty)}))
    with pytest.raises(SettingError, match="cannot read"):
        GrpcTransport(grpc_settings("https://127.0.0.1:1", {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path)}))


@pytest.mark.parametrize("header", ["x!y=1", "x-bin=1", "grpc-timeout=1"])
def test_metadata_that_grpc_cannot_hold(header: str) -> None:
    """A header name that HTTP allows and gRPC does not is an error before anything is sent."""
    with pytest.raises(SettingError, match="header 1 has a name that gRPC cannot send"):
        GrpcTransport(grpc_settings("http://127.0.0.1:1", headers=[header]))


def test_closed() -> None:
    """A transport that was closed sends nothing and says so."""
    transport = GrpcTransport(grpc_settings("http://127.0.0.1:1"))
    transport.close()

    assert isinstance(transport.send(BODY), NotSent)


def test_secrets_in_details() -> None:
    """A backend that repeats our token does not bring it into a message, with or without its scheme."""
    with grpc_server(aborting(grpc.StatusCode.UNAUTHENTICATED, "bad token s3cr3t-token")) as target:
        for header in ("x-token=s3cr3t-token", "authorization=Bearer s3cr3t-token"):
            verdict = judge(send(grpc_settings(f"http://{target}", headers=[header])))

            assert isinstance(verdict, Misconfigured)
            assert verdict.reason.startswith("gRPC UNAUTHENTICATED: bad token ...; check")


def test_secrets_in_a_partial_success() -> None:
    """A partial success that repeats our metadata does not bring it into a message."""

    def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
        response = ExportTraceServiceResponse()
        response.partial_success.rejected_spans = 1
        response.partial_success.error_message = f"got {dict(context.invocation_metadata())['authorization']!r}"
        return response.SerializeToString()

    with grpc_server(answer) as target:
        verdict = judge(send(grpc_settings(f"http://{target}", headers=["authorization=Bearer s3cr3t-token"])))

    assert verdict == PartlyRefused(1, "got '...'")


def test_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that gRPC would take is shown; for this machine's own ports there is none."""
    monkeypatch.setenv("http_proxy", "http://u:p@127.0.0.1:1")

    far = GrpcTransport(grpc_settings("http://backend.invalid:4317"))
    near = GrpcTransport(grpc_settings("http://localhost:4317"))

    assert (far.proxy, near.proxy) == ("http://127.0.0.1:1", "")
    far.close()
    near.close()


def test_loopback_goes_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment is not asked for this machine's own ports."""
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    with grpc_server(lambda body, context: b"") as target:
        assert send(grpc_settings(f"http://{target}")) == GrpcReply("OK")
