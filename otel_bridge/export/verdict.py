"""What a backend's reply means for the spans that were sent.

The rules are the OTLP specification's ("OTLP/HTTP Response", "OTLP/gRPC Response", "Partial Success"), read for a
sender that must not lose anything: what a change of the configuration can heal waits, and only what the backend holds
against the data itself counts as refused.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import assert_never

from otel_bridge.export.reply import GrpcReply, HttpReply, NoReply, NotSent, Reply

MAX_WAIT_S = 3600.0
"""The longest wait that a backend can ask for; more is a mistake that would look like a bridge that hangs."""

_MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class Delivered:
    """The backend has the spans; `warning` is what it said beside, often nothing."""

    warning: str = ""


@dataclass(frozen=True, slots=True)
class PartlyRefused:
    """The backend kept all but `count` spans and does not say which; OTLP forbids to send them again."""

    count: int
    message: str


@dataclass(frozen=True, slots=True)
class TryLater:
    """The backend cannot take them now; `after_s` is the wait that it asked for, if it did."""

    reason: str
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The request may have been too large: halve it. A single span is refused if `is_final`, else it waits."""

    reason: str
    code: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The backend will never take this request; `code` is the status it gave."""

    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """Nothing is wrong with the spans: address, credentials or protocol are; `reason` says what to check."""

    reason: str


Verdict = Delivered | PartlyRefused | TryLater | TooLarge | Refused | Misconfigured

_CHECK_CREDENTIALS = "check --header and OTEL_EXPORTER_OTLP_HEADERS"
_CHECK_ADDRESS = (
    "check host, port and path of the endpoint (OTLP over HTTP is a POST to /v1/traces, mostly on port 4318)"
)
_CHECK_FORMAT = "check that it takes protobuf, and OTEL_EXPORTER_OTLP_COMPRESSION"

# What Go's server, nginx, Apache and Tomcat say, with a 400, to a request without TLS that came to their TLS port.
_TLS_WANTED = (
    b"HTTP request to an HTTPS server",
    b"plain HTTP request was sent to HTTPS port",
    b"plain HTTP to an SSL-enabled server port",
    b"host and port requires TLS",
)

_LATER_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
# Beside the ones of the table in docs/delivery.md: what no backend says because of the spans in a request.
_MISCONFIGURED_STATUSES = {
    401: _CHECK_CREDENTIALS,
    403: _CHECK_CREDENTIALS,
    404: _CHECK_ADDRESS,
    405: _CHECK_ADDRESS,
    406: _CHECK_FORMAT,
    407: "check the user and password of the proxy",
    410: _CHECK_ADDRESS,
    411: _CHECK_ADDRESS,
    415: _CHECK_FORMAT,
    421: _CHECK_ADDRESS,
    426: _CHECK_ADDRESS,
    501: _CHECK_ADDRESS,
    505: _CHECK_ADDRESS,
    511: "check whether this network wants a login first",
}
_LATER_CODES = frozenset({"UNAVAILABLE", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "DATA_LOSS"})
_CHECK_GRPC_ADDRESS = "check host and port of the endpoint (OTLP over gRPC is mostly on port 4317), and --protocol"
_MISCONFIGURED_CODES = {
    "UNAUTHENTICATED": _CHECK_CREDENTIALS,
    "PERMISSION_DENIED": _CHECK_CREDENTIALS,
    "UNIMPLEMENTED": _CHECK_GRPC_ADDRESS,
    "NOT_FOUND": _CHECK_GRPC_ADDRESS,
}
_NO_GRPC_STATUS = "Received http2 header with status: "
"""So the client library begins the details of a code that it made of an HTTP status: no server of gRPC answered."""


def judge(reply: Reply) -> Verdict:
    """What `reply` means.

    Texts of the backend come out on one line, cut, without control characters and without what we sent it to show who
    we are: every one of them goes through `_said`.
    """
    match reply:
        case HttpReply():
            return _judge_http(reply)
        case GrpcReply():
            return _judge_grpc(reply)
        case NoReply(reason):
            return TryLater(_said(reply, reason))
        case NotSent(reason):
            return Misconfigured(_said(reply, reason))
        case _:
            assert_never(reply)


def is_silence(reply: Reply) -> bool:
    """Whether nobody answered: a backend has to be started, or to be looked for elsewhere."""
    return isinstance(reply, NoReply) or (
        isinstance(reply, GrpcReply) and reply.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    )


def _said(reply: Reply, text: str) -> str:
    # Masked first: a secret that is cut, or whose signs are escaped, would not be found any more.
    return printable(reply.secrets.masked(text))


def printable(text: str) -> str:
    """A foreign text as one short line: control characters and what else does not print are escaped."""
    line = "".join(char if char.isprintable() else " " if char in "\t\r\n" else repr(char)[1:-1] for char in text)
    line = " ".join(line.split())
    return line if len(line) <= _MAX_REASON_CHARS else line[: _MAX_REASON_CHARS - 1] + "…"


def retry_after_s(value: str, now_unix_s: float) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110, 10.2.3), which holds seconds or a date; None if it holds neither."""
    value = value.strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now_unix_s
        except (ValueError, OverflowError):
            return None
    return max(0.0, min(seconds, MAX_WAIT_S)) if not math.isnan(seconds) else None


def _judge_http(reply: HttpReply) -> Verdict:
    status = reply.status
    if 200 <= status < 300:
        return _judge_success(reply)
    code = f"HTTP {status}"
    text = _error_text(reply)
    said = f"{code}: {text}" if text else code
    if 300 <= status < 400:
        target = f" to {_said(reply, reply.location)}" if reply.location else ""
        return Misconfigured(f"HTTP {status}, a redirect{target}, which is not followed; give the final address")
    if status < 200:
        return Misconfigured(f"{said}; {_CHECK_ADDRESS}")
    if status == 400 and any(words in reply.body for words in _TLS_WANTED):
        return Misconfigured(f"{code}: the port speaks TLS; give the endpoint with https://, not http://")
    if status in _LATER_STATUSES:
        return TryLater(said, retry_after_s(reply.retry_after, reply.received_unix_s))
    if status == 413:
        return TooLarge(text or "too large", code, is_final=True)
    if status in _MISCONFIGURED_STATUSES:
        return Misconfigured(f"{said}; {_MISCONFIGURED_STATUSES[status]}")
    return Refused(text or "no reason given", code)


def _judge_success(reply: HttpReply) -> Verdict:
    """A 2xx is the backend's word only if it comes from an OTLP endpoint: Jaeger's web port answers 200 with HTML."""
    if not reply.body:
        return Delivered()
    media_type = reply.content_type.partition(";")[0].strip().lower()
    verdict: Verdict | None = None
    if media_type in ("", "application/x-protobuf", "application/protobuf", "application/octet-stream"):
        verdict = _partial_success(reply)
    elif media_type == "application/json":
        verdict = _partial_success_json(reply)
    if verdict is None:
        what = _said(reply, media_type) or "something"
        return Misconfigured(f"HTTP {reply.status} with {what} that is no OTLP answer; {_CHECK_ADDRESS}")
    return verdict


def _judge_grpc(reply: GrpcReply) -> Verdict:
    code = reply.code
    if code == "OK":
        verdict = _partial_success(reply)
        return verdict or Misconfigured("gRPC OK with an answer that is no OTLP answer; check the endpoint")
    details = _said(reply, reply.details)
    said = f"gRPC {code}: {details}" if details else f"gRPC {code}"
    if code in _LATER_CODES or (code == "RESOURCE_EXHAUSTED" and reply.retry_after_s is not None):
        after_s = reply.retry_after_s
        return TryLater(said, None if after_s is None else max(0.0, min(after_s, MAX_WAIT_S)))
    if code in ("RESOURCE_EXHAUSTED", "OUT_OF_RANGE"):
        return TooLarge(details or "too large, or too busy", f"gRPC {code}", is_final=False)
    if code in _MISCONFIGURED_CODES:
        return Misconfigured(f"{said}; {_MISCONFIGURED_CODES[code]}")
    if details.startswith(_NO_GRPC_STATUS):
        return Misconfigured(f"{said}; {_CHECK_GRPC_ADDRESS}")
    return Refused(details or "no reason given", f"gRPC {code}")


def _partial_success(reply: HttpReply | GrpcReply) -> Verdict | None:
    """The meaning of an `ExportTraceServiceResponse`, or None if the bytes are none."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(reply.body).partial_success
    except DecodeError:
        return None
    return _partly(reply, partial.rejected_spans, partial.error_message)


def _partial_success_json(reply: HttpReply) -> Verdict | None:
    """The same for OTLP/JSON, which some endpoints answer whatever they were sent."""
    try:
        answer = json.loads(reply.body)
        if not isinstance(answer, dict) or answer.keys() - {"partialSuccess"}:
            return None
        partial = answer.get("partialSuccess") or {}
        return _partly(reply, int(partial.get("rejectedSpans", 0)), str(partial.get("errorMessage", "")))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _partly(reply: Reply, rejected: int, message: str) -> Verdict:
    said = _said(reply, message)
    return PartlyRefused(rejected, said) if rejected > 0 else Delivered(said)


def _error_text(reply: HttpReply) -> str:
    """What an error answer says: the message of a `google.rpc.Status`, or the first line of a text."""
    media_type = reply.content_type.partition(";")[0].strip().lower()
    if media_type == "application/x-protobuf":
        from google.protobuf.message import DecodeError
        from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

        try:
            return _said(reply, Status.FromString(reply.body).message)
        except DecodeError:
            return ""
    text = reply.body.decode(errors="replace").strip()
    if media_type == "application/json":
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return _said(reply, text)
        message = answer.get("message") if isinstance(answer, dict) else None
        return _said(reply, message if isinstance(message, str) else text)
    if media_type == "text/html":
        return ""
    return _said(reply, text.partition("\n")[0])
