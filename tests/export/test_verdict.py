from __future__ import annotations

from http import HTTPStatus

import grpc
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_bridge.export.reply import GrpcReply, HttpReply, NoReply, NotSent, Reply
from otel_bridge.export.verdict import (
    MAX_WAIT_S,
    Delivered,
    Misconfigured,
    PartlyRefused,
    Refused,
    TooLarge,
    TryLater,
    is_silence,
    judge,
    printable,
    retry_after_s,
)

PROTOBUF = "application/x-protobuf"
NOW_S = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def partial(count: int, message: str) -> bytes:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = count
    response.partial_success.error_message = message
    return response.SerializeToString()


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (HttpReply(200), Delivered()),
        (HttpReply(200, "text/html"), Delivered()),
        (HttpReply(204), Delivered()),
        (HttpReply(200, PROTOBUF, ExportTraceServiceResponse().SerializeToString()), Delivered()),
        (HttpReply(200, PROTOBUF, partial(0, "")), Delivered()),
        (HttpReply(200, f"{PROTOBUF}; charset=x", partial(0, "slow down")), Delivered("slow down")),
        (HttpReply(200, "", partial(3, "too old")), PartlyRefused(3, "too old")),
        (HttpReply(202, PROTOBUF, partial(3, "too\x1b[31mold")), PartlyRefused(3, "too\\x1b[31mold")),
        (HttpReply(200, "application/json", b"{}"), Delivered()),
        (HttpReply(200, "application/json", b'{"partialSuccess":{}}'), Delivered()),
        (
            HttpReply(200, "application/json", b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}}'),
            PartlyRefused(2, "no"),
        ),
        (GrpcReply("OK"), Delivered()),
        (GrpcReply("OK", body=partial(0, "hm")), Delivered("hm")),
        (GrpcReply("OK", body=partial(1, "no")), PartlyRefused(1, "no")),
    ],
)
def test_success(reply: HttpReply | GrpcReply, verdict: Delivered | PartlyRefused) -> None:
    """A 2xx with an OTLP answer, or an empty one, is the backend's word; a partial success says what it refused."""
    assert judge(reply) == verdict


@pytest.mark.parametrize(
    "reply",
    [
        HttpReply(200, "text/html", b"<html>Jaeger UI</html>"),
        HttpReply(200, "text/plain", b"OK"),
        HttpReply(200, "application/json", b'{"status":"ok"}'),
        HttpReply(200, "application/json", b"[]"),
        HttpReply(200, "application/json", b'{"partialSuccess":{"rejectedSpans":"x"}}'),
        HttpReply(200, "application/json", b"[" * 100_000),
        HttpReply(200, PROTOBUF, b"<html>"),
        HttpReply(200, "", b"OK"),
        GrpcReply("OK", body=b"<html>"),
    ],
)
def test_success_of_somebody_else(reply: HttpReply | GrpcReply) -> None:
    """A 2xx with anything but an OTLP answer is no delivery: the address is wrong."""
    verdict = judge(reply)

    assert isinstance(verdict, Misconfigured)
    assert "no OTLP answer; check" in verdict.reason


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
def test_later(status: int) -> None:
    """A backend that is busy or away is tried again, at the time that it asks for."""
    reply = HttpReply(status, "text/plain", b"busy\nsecond line", retry_after="7")

    assert judge(reply) == TryLater(f"HTTP {status}: busy", 7.0)
    assert judge(HttpReply(status)) == TryLater(f"HTTP {status}", None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("", None),
        ("soon", None),
        ("nan", None),
        ("0", 0.0),
        ("2.5", 2.5),
        ("-3", 0.0),
        (" 30 ", 30.0),
        ("999999999", MAX_WAIT_S),
        ("inf", MAX_WAIT_S),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("Tue, 99 Nov 2023 22:13:00 GMT", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    """Retry-After is seconds or a date, never negative, never so long that the bridge seems to hang."""
    assert retry_after_s(value, NOW_S) == seconds


@given(st.text())
def test_retry_after_never_raises(value: str) -> None:
    """Whatever a server writes there, the header gives a wait within bounds or none."""
    seconds = retry_after_s(value, NOW_S)

    assert seconds is None or 0 <= seconds <= MAX_WAIT_S


@pytest.mark.parametrize(
    "status", [101, 301, 302, 307, 308, 401, 403, 404, 405, 406, 407, 410, 411, 415, 421, 426, 501]
)
def test_misconfigured(status: int) -> None:
    """Nothing is dropped for a wrong address or wrong credentials; the message has the code and what to check."""
    verdict = judge(HttpReply(status, "text/plain", b"no"))

    assert isinstance(verdict, Misconfigured)
    assert verdict.reason.startswith(f"HTTP {status}")
    assert ";" in verdict.reason or "," in verdict.reason


def test_redirect_names_its_target() -> None:
    """A redirect is not followed; its target, which may be the right address, is shown."""
    verdict = judge(HttpReply(302, location="https://sso.example/login"))

    assert verdict == Misconfigured(
        "HTTP 302, a redirect to https://sso.example/login, which is not followed; give the final address"
    )


@pytest.mark.parametrize("status", [400, 402, 409, 414, 422, 431, 451, 500, 508, 599])
def test_refused(status: int) -> None:
    """400 and the other codes that OTLP calls permanent refuse the request."""
    assert judge(HttpReply(status, "text/plain", b"bad span")) == Refused("bad span", f"HTTP {status}")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("", b"Client sent an HTTP request to an HTTPS server.\n"),
        ("text/html", b"<html>\r\n<center>The plain HTTP request was sent to HTTPS port</center>\r\n</html>"),
        (
            "text/html; charset=iso-8859-1",
            b"<p>Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
        ),
        ("text/plain;charset=UTF-8", b"Bad Request\r\nThis combination of host and port requires TLS.\r\n"),
    ],
)
def test_plain_request_to_a_tls_port(content_type: str, body: bytes) -> None:
    """A server that misses TLS answers 400, which holds nothing against the spans: they wait, and https is named."""
    assert judge(HttpReply(400, content_type, body)) == Misconfigured(
        "HTTP 400: the port speaks TLS; give the endpoint with https://, not http://"
    )


def test_every_status_has_a_verdict() -> None:
    """No status code of HTTP is a success but a 2xx."""
    for status in HTTPStatus:
        assert isinstance(judge(HttpReply(status)), Delivered) == (200 <= status < 300)


@pytest.mark.parametrize(
    ("content_type", "body", "reason"),
    [
        ("text/plain", b"  bad\nmore", "bad"),
        ("", b"", "no reason given"),
        ("text/html", b"<html>long page</html>", "no reason given"),
        (PROTOBUF, Status(code=3, message="span has no name").SerializeToString(), "span has no name"),
        (PROTOBUF, b"<html>", "no reason given"),
        ("application/json", b'{"code":3,"message":"bad id"}', "bad id"),
        ("application/json", b'{"error":"x"}', '{"error":"x"}'),
        ("application/json", b"oops", "oops"),
        ("text/plain", b"\x1b]0;title\x07\xff", "\\x1b]0;title\\x07\ufffd"),
    ],
)
def test_reasons(content_type: str, body: bytes, reason: str) -> None:
    """The reason of a refusal is what the backend says, in each of its forms, on one harmless line."""
    assert judge(HttpReply(400, content_type, body)) == Refused(reason, "HTTP 400")


def test_too_large() -> None:
    """413 is final for a single span; gRPC's codes for it also mean "busy", so a single span waits."""
    assert judge(HttpReply(413)) == TooLarge("too large", "HTTP 413", is_final=True)
    assert judge(GrpcReply("RESOURCE_EXHAUSTED", "4194305 > 4194304")) == TooLarge(
        "4194305 > 4194304", "gRPC RESOURCE_EXHAUSTED", is_final=False
    )
    assert judge(GrpcReply("OUT_OF_RANGE")) == TooLarge("too large, or too busy", "gRPC OUT_OF_RANGE", is_final=False)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (GrpcReply("UNAVAILABLE", "gone"), TryLater("gRPC UNAVAILABLE: gone")),
        (GrpcReply("UNAVAILABLE", "gone", 4.0), TryLater("gRPC UNAVAILABLE: gone", 4.0)),
        (GrpcReply("ABORTED"), TryLater("gRPC ABORTED")),
        (GrpcReply("CANCELLED"), TryLater("gRPC CANCELLED")),
        (GrpcReply("DEADLINE_EXCEEDED"), TryLater("gRPC DEADLINE_EXCEEDED")),
        (GrpcReply("DATA_LOSS"), TryLater("gRPC DATA_LOSS")),
        (GrpcReply("RESOURCE_EXHAUSTED", "busy", 1e9), TryLater("gRPC RESOURCE_EXHAUSTED: busy", MAX_WAIT_S)),
        (GrpcReply("INVALID_ARGUMENT", "bad"), Refused("bad", "gRPC INVALID_ARGUMENT")),
        (GrpcReply("INTERNAL"), Refused("no reason given", "gRPC INTERNAL")),
    ],
)
def test_grpc(reply: GrpcReply, verdict: TryLater | Refused) -> None:
    """gRPC's codes are retryable as OTLP lists them; RESOURCE_EXHAUSTED only with a RetryInfo."""
    assert judge(reply) == verdict


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED", "NOT_FOUND"])
def test_grpc_misconfigured(code: str) -> None:
    """Missing rights and a missing service are a matter of the configuration, as over HTTP."""
    verdict = judge(GrpcReply(code, "no"))

    assert isinstance(verdict, Misconfigured)
    assert verdict.reason.startswith(f"gRPC {code}: no; check")


@pytest.mark.parametrize("code", ["UNKNOWN", "INTERNAL"])
def test_grpc_code_made_of_an_http_status(code: str) -> None:
    """An HTTP status in the place of a gRPC one is no word on the spans: no server of gRPC answers there."""
    verdict = judge(GrpcReply(code, "Received http2 header with status: 415"))

    assert isinstance(verdict, Misconfigured)
    assert "status: 415; check host and port" in verdict.reason


def test_every_grpc_code_has_a_verdict() -> None:
    """No code of gRPC is a success but OK."""
    for code in grpc.StatusCode:
        assert isinstance(judge(GrpcReply(code.name)), Delivered) == (code is grpc.StatusCode.OK)


def test_without_a_reply() -> None:
    """No answer is tried again; a request that could not be made waits for a person."""
    assert judge(NoReply("connection refused")) == TryLater("connection refused")
    assert judge(NotSent("the proxy's URL is none")) == Misconfigured("the proxy's URL is none")


@given(st.text())
def test_printable(text: str) -> None:
    """A foreign text comes out on one short line that a terminal can only print."""
    line = printable(text)

    assert line.isprintable()
    assert len(line) <= 200


def test_silence() -> None:
    """Only where nobody answered does it help to start a backend."""
    silent: list[Reply] = [NoReply("x"), GrpcReply("UNAVAILABLE"), GrpcReply("DEADLINE_EXCEEDED")]
    answered: list[Reply] = [HttpReply(401), HttpReply(503), GrpcReply("UNAUTHENTICATED"), NotSent("no SOCKS support")]

    assert [is_silence(reply) for reply in (*silent, *answered)] == [True] * 3 + [False] * 4
