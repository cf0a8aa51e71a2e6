from __future__ import annotations

import base64
import ssl
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from requests import exceptions

from otel_bridge.errors import SettingError
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.http_transport import SETTING_ERRORS, TRANSIENT_ERRORS, HttpTransport
from otel_bridge.export.reply import MAX_REPLY_BYTES, HttpReply, NoReply, NotSent, Reply
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.export.verdict import Misconfigured, PartlyRefused, judge
from otel_bridge.settings import ExportSettings
from otel_bridge.testing import CannedReply, Receiver
from tests.export.backends import make_certificate, raw_server, settings
from tests.export.spans import span

BODY = RequestEncoder(Resource({"service.name": "x"}), Scope()).encode([SpanEncoder().encode(span(1))])


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy, no .netrc and no setting of the machine that runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def send(chosen: ExportSettings, body: bytes = BODY) -> Reply:
    transport = HttpTransport(chosen)
    try:
        return transport.send(body)
    finally:
        transport.close()


def test_body_arrives_as_it_is(receiver: Receiver) -> None:
    """The bytes of the request are sent unchanged, to /v1/traces, as protobuf; the reply is seen."""
    reply = send(settings(receiver.endpoint))

    assert isinstance(reply, HttpReply)
    assert (reply.status, reply.body) == (200, b"")
    (request,) = receiver.requests
    assert (request.path, request.body, request.spans) == ("/v1/traces", BODY, (span(1),))
    assert request.headers["content-type"] == "application/x-protobuf"


def test_connection_is_kept(receiver: Receiver) -> None:
    """All requests of a transport go over one connection."""
    transport = HttpTransport(settings(receiver.endpoint))
    for _ in range(3):
        transport.send(BODY)

    pools = transport._session.get_adapter("http://").poolmanager.pools  # type: ignore[attr-defined]
    assert [pools[key].num_connections for key in pools.keys()] == [1]  # noqa: SIM118, it is no dict
    transport.close()


@pytest.mark.parametrize("name", ["none", "gzip", "deflate"])
def test_compression(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """OTEL_EXPORTER_OTLP_COMPRESSION packs our body, as the header says; an empty variable for traces is none."""
    environ = {"OTEL_EXPORTER_OTLP_COMPRESSION": name, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": ""}
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    with Receiver() as receiver:
        send(settings(receiver.endpoint, environ))

        (request,) = receiver.requests
        assert request.headers.get("content-encoding", "none") == name
        assert (zlib.decompress(request.body) if name == "deflate" else request.body) == BODY


def test_headers(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers come from the variable and from flags; a flag wins over the variable."""
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "x-team=a%20b,authorization=Bearer%20old"}
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", environ["OTEL_EXPORTER_OTLP_HEADERS"])
    send(settings(receiver.endpoint, environ, headers=["Authorization=Bearer new"]))

    headers = receiver.requests[0].headers
    assert (headers["x-team"], headers["authorization"]) == ("a b", "Bearer new")


def test_given_authorization_beats_netrc(receiver: Receiver, tmp_path: Path) -> None:
    """A password for the host in ~/.netrc does not replace the Authorization header that was given."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    netrc.chmod(0o600)

    send(settings(receiver.endpoint, headers=["authorization=Bearer given"]))
    send(settings(receiver.endpoint))

    first, second = receiver.requests
    assert first.headers["authorization"] == "Bearer given"
    assert second.headers["authorization"] == "Basic " + base64.b64encode(b"u:p").decode()


def test_loopback_goes_direct(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment is not asked for this machine's own ports."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    transport = HttpTransport(settings(receiver.endpoint))

    assert transport.proxy == ""
    assert isinstance(transport.send(BODY), HttpReply)
    transport.close()


def test_proxy_is_used_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host is reached through the proxy, which is shown without its password."""
    with Receiver(replies=lambda _: CannedReply(200)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{proxy.port}")
        transport = HttpTransport(settings("http://backend.invalid:4318"))
        transport.send(BODY)
        transport.close()

        assert transport.proxy == f"http://127.0.0.1:{proxy.port}"
        assert proxy.requests[0].path == "http://backend.invalid:4318/v1/traces"


def test_proxy_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be reached is named as the cause."""
    monkeypatch.setenv("http_proxy", "http://user:secret@127.0.0.1:1")

    reply = send(settings("http://backend.invalid:4318"))

    assert reply == NoReply("the proxy: connection refused")


def test_user_info_is_used_but_not_shown(receiver: Receiver) -> None:
    """User and password of the URL are sent as Basic credentials and never shown."""
    transport = HttpTransport(settings(f"http://user:secret@127.0.0.1:{receiver.port}"))
    transport.send(BODY)
    transport.close()

    assert transport.endpoint == f"http://127.0.0.1:{receiver.port}/v1/traces"
    assert receiver.requests[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_seen(status: int) -> None:
    """A redirect is not followed: it comes back with its target, without user info and query."""
    location = "http://u:p@elsewhere.invalid/login?token=x"
    with Receiver(replies=[CannedReply(status, headers={"Location": location})]) as receiver:
        reply = send(settings(receiver.endpoint))

        assert isinstance(reply, HttpReply)
        assert (reply.status, reply.location) == (status, "http://elsewhere.invalid/login")
        assert len(receiver.requests) == 1


def test_redirect_to_nowhere() -> None:
    """A redirect whose target is no URL is a redirect all the same."""
    with Receiver(replies=[CannedReply(302, headers={"Location": "http://[::1"})]) as receiver:
        reply = send(settings(receiver.endpoint))

        assert isinstance(reply, HttpReply)
        assert (reply.status, reply.location) == (302, "")


@pytest.mark.parametrize("status", [400, 401, 413, 429, 500, 503])
def test_errors_are_sent_once(status: int) -> None:
    """The SDK's own retries stay away: each `send` is one request, whatever the status."""
    canned = CannedReply(status, b"said", {"Retry-After": "9", "Content-Type": "text/plain"})
    with Receiver(replies=[canned]) as receiver:
        reply = send(settings(receiver.endpoint))

        assert isinstance(reply, HttpReply)
        assert (reply.status, reply.body, reply.retry_after, reply.content_type) == (status, b"said", "9", "text/plain")
        assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("user_info", "headers", "netrc"),
    [
        ("", ["x-token=s3cr3t-token"], ""),
        ("", ["authorization=Bearer s3cr3t-token"], ""),
        ("joe:s3cr3t-token@", [], ""),
        ("", [], "machine 127.0.0.1 login joe password s3cr3t-token"),
    ],
)
def test_secrets_in_an_answer(user_info: str, headers: list[str], netrc: str, tmp_path: Path) -> None:
    """A backend that repeats our credentials, wherever we have them from, does not bring them into a message."""
    (tmp_path / ".netrc").write_text(netrc)
    (tmp_path / ".netrc").chmod(0o600)
    echoed = [str(base64.b64encode(b"joe:s3cr3t-token"), "ascii"), "s3cr3t-token"]
    replies = [CannedReply(401, f"bad token: {one}".encode(), {"Content-Type": "text/plain"}) for one in echoed]
    with Receiver(replies=replies) as receiver:
        transport = HttpTransport(settings(f"http://{user_info}127.0.0.1:{receiver.port}", headers=headers))
        said = [judge(transport.send(BODY)) for _ in echoed]
        transport.close()

    expected = Misconfigured("HTTP 401: bad token: ...; check --header and OTEL_EXPORTER_OTLP_HEADERS")
    assert said[1] == expected
    assert said[0] == expected or (headers and echoed[0] in repr(said[0]))  # only Basic is sent as base64


def test_secrets_in_a_partial_success() -> None:
    """A partial success that repeats our token is read all the same, without it."""
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 1
    response.partial_success.error_message = "bad token s3cr3t-token"
    canned = CannedReply(200, response.SerializeToString(), {"Content-Type": "application/x-protobuf"})
    with Receiver(replies=[canned]) as receiver:
        reply = send(settings(receiver.endpoint, headers=["x-token=s3cr3t-token"]))

    assert judge(reply) == PartlyRefused(1, "bad token ...")


def test_long_answers_are_cut() -> None:
    """Of an answer without end only the first part is read."""
    with Receiver(replies=[CannedReply(200, b"x" * 2_000_000)]) as receiver:
        reply = send(settings(receiver.endpoint))

        assert isinstance(reply, HttpReply)
        assert MAX_REPLY_BYTES <= len(reply.body) <= 2 * MAX_REPLY_BYTES


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            b"",
            "the connection was closed without an answer"
            " (a TLS port wants https://, a gRPC port wants --protocol grpc)",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            "the connection was closed in the middle of the answer",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nhalf",
            "the connection was closed in the middle of the answer",
        ),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200, "the answer cannot be read (got more than 100 headers)"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00", "the answer is not HTTP (a gRPC port wants --protocol grpc)"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf",
            "the answer cannot be unpacked",
        ),
    ],
)
def test_broken_answers(answer: bytes, reason: str) -> None:
    """An answer that is none, or half of one, is no answer, and says so in plain words."""
    with raw_server(answer) as port:
        assert send(settings(f"http://127.0.0.1:{port}")) == NoReply(reason)


def test_no_answer() -> None:
    """A server that accepts and never answers is given up after the timeout of the variable, in seconds."""
    with raw_server(None) as port:
        reply = send(settings(f"http://127.0.0.1:{port}", {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.2"}))

    assert reply == NoReply("no answer within 0.2 s")


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "drop"),
    [
        pytest.param(b"H", b"T", id="status line"),
        pytest.param(OK + b"A: ", b"b", id="headers"),
        pytest.param(OK + b"Content-Length: 60000\r\n\r\n", b"x", id="body"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", id="chunks"),
        pytest.param(OK + b"Connection: close\r\n\r\n", b"x", id="body without an end"),
    ],
)
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
def test_answer_that_drips(
    answer: bytes, drop: bytes, is_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeout is one for the whole answer: one that comes byte by byte is given up, and is none."""
    context = None
    if is_tls:
        certificate, key = make_certificate(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    with raw_server(answer, drop=drop, tls=context) as port:
        endpoint = f"{'https' if is_tls else 'http'}://127.0.0.1:{port}"
        reply = send(settings(endpoint, {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.4"}))

    assert reply == NoReply("no answer within 0.4 s")


def test_handshake_that_drips() -> None:
    """The timeout counts during the TLS handshake too."""
    with raw_server(b"\x16\x03\x03\x40\x00", drop=b"\x02") as port:
        reply = send(settings(f"https://127.0.0.1:{port}", {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.4"}))

    assert reply == NoReply("no answer within 0.4 s")


def test_answer_that_drips_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout counts for what a proxy answers, also before it lets the exchange through."""
    with raw_server(b"H", drop=b"T") as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        for scheme in ("http", "https"):
            reply = send(settings(f"{scheme}://backend.invalid:4318", {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.4"}))

            assert reply == NoReply("no answer within 0.4 s")


def test_answer_that_drips_over_a_kept_connection() -> None:
    """A connection that served an exchange well is given up in the next one, if that drips."""
    with raw_server(OK + b"A: ", before=OK + b"Content-Length: 0\r\n\r\n", drop=b"b") as port:
        transport = HttpTransport(settings(f"http://127.0.0.1:{port}", {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.4"}))
        replies = [transport.send(BODY), transport.send(BODY)]
        transport.close()

    assert isinstance(replies[0], HttpReply)
    assert replies[1] == NoReply("no answer within 0.4 s")


def test_no_thread_for_the_deadline(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be started, as at the end of a program, exchanges go on."""

    def start(_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("otel_bridge.export.deadline.threading.Timer.start", start)

    assert isinstance(send(settings(receiver.endpoint)), HttpReply)


def test_connection_refused() -> None:
    """A port where nobody listens is said in two words, without addresses of objects."""
    with Receiver() as receiver:
        port = receiver.port

    assert send(settings(f"http://127.0.0.1:{port}")) == NoReply("connection refused")


def test_unknown_host() -> None:
    """A host name that does not exist is said as such."""
    reply = send(settings("http://no-such-host.invalid:4318"))

    assert isinstance(reply, NoReply)
    assert reply.reason.startswith("the host name cannot be found (")


def test_unknown_certificate(tmp_path: Path) -> None:
    """A certificate of an unknown authority is refused with the variable that helps, and taken once it is set."""
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", tls=context) as port:
        refused = send(settings(f"https://127.0.0.1:{port}"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
            # requests lets this one win over the certificate of a session; it must not win here.
            patch.setenv("REQUESTS_CA_BUNDLE", ssl.get_default_verify_paths().openssl_cafile)
            taken = send(settings(f"https://127.0.0.1:{port}"))

    assert isinstance(refused, NoReply)
    assert refused.reason.startswith("TLS: the certificate is not trusted (self")
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in refused.reason
    assert isinstance(taken, HttpReply)


def test_certificate_variable_that_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty OTEL_EXPORTER_OTLP_CERTIFICATE counts as not set: certificates are still checked."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "")
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", tls=context) as port:
        reply = send(settings(f"https://127.0.0.1:{port}"))

    assert isinstance(reply, NoReply)


def test_tls_to_a_plain_port(receiver: Receiver) -> None:
    """https:// to a port without TLS is said as such, with what to change."""
    reply = send(settings(receiver.endpoint.replace("http:", "https:")))

    assert isinstance(reply, NoReply)
    assert reply.reason == "the answer is not TLS (a plain HTTP port wants http://, not https://)"


@pytest.mark.parametrize("is_tls", [False, True], ids=["http", "https"])
def test_backend_that_hangs_up(is_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs up and never answered may speak something else, which is said; what answered before is only gone."""
    context = None
    if is_tls:
        certificate, key = make_certificate(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    scheme = "https" if is_tls else "http"
    with raw_server(b"", tls=context) as port:
        never = send(settings(f"{scheme}://127.0.0.1:{port}"))
    with raw_server(b"", before=OK + b"Content-Length: 0\r\n\r\n", tls=context) as port:
        transport = HttpTransport(settings(f"{scheme}://127.0.0.1:{port}"))
        first, second = transport.send(BODY), transport.send(BODY)
        transport.close()

    hint = "a gRPC port wants --protocol grpc" if is_tls else "a TLS port wants https://, a gRPC port wants"
    assert isinstance(never, NoReply)
    assert never.reason.startswith(f"the connection was closed without an answer ({hint}")
    assert isinstance(first, HttpReply)
    assert second == NoReply("the connection was closed without an answer")


def test_certificate_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate file that vanishes while the bridge runs waits for a person, and is no traceback."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "gone.pem"))

    reply = send(settings("https://127.0.0.1:1"))

    assert isinstance(reply, NotSent)
    assert "gone.pem" in reply.reason


def test_proxy_setting_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy variable that is no URL is said before anything is sent."""
    monkeypatch.setenv("http_proxy", "http:///nowhere")

    with pytest.raises(SettingError, match="http_proxy: the URL names no host"):
        send(settings("http://backend.invalid:4318"))


def test_socks_proxy_without_its_package() -> None:
    """What keeps from using a SOCKS proxy is said with what to do."""
    transport = HttpTransport(settings("http://127.0.0.1:1"))
    reply = transport._session._from_error(exceptions.InvalidSchema("Missing dependencies for SOCKS support."))
    transport.close()

    assert reply == NotSent("a SOCKS proxy needs the package PySocks; install it, or name an http:// proxy")


def test_every_exception_of_requests_is_mapped() -> None:
    """A class that requests gains fails here, until somebody decides what it means."""
    known = {
        one
        for one in vars(exceptions).values()
        if isinstance(one, type)
        and issubclass(one, exceptions.RequestException)
        and one is not exceptions.RequestException
    }

    assert known == set(TRANSIENT_ERRORS) | set(SETTING_ERRORS)
    assert not set(TRANSIENT_ERRORS) & set(SETTING_ERRORS)


@pytest.mark.parametrize("kind", TRANSIENT_ERRORS + SETTING_ERRORS, ids=lambda kind: kind.__name__)
def test_mapping(kind: type[exceptions.RequestException]) -> None:
    """Each exception becomes the reply that its list says, and none shows the password of the URL."""
    transport = HttpTransport(settings("http://u:secret@127.0.0.1:1"))
    error = (
        kind("x", "y", 0) if kind is exceptions.JSONDecodeError else kind("at http://u:secret@127.0.0.1:1/v1/traces")
    )

    reply = transport._session._from_error(error)

    assert isinstance(reply, NotSent if kind in SETTING_ERRORS else NoReply)
    assert "secret" not in reply.reason
    transport.close()
