"""What came back from a backend, as plain values; `otel_bridge.export.verdict` says what they mean.

The texts in them are as they came. Each reply carries the `secrets` of the transport that got it, which are to be
masked in whatever is shown of it; they are no part of its value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_bridge.export.secrets import NO_SECRETS, Secrets

MAX_REPLY_BYTES = 64 * 1024
"""So much of an answer is read. OTLP's answers have a few bytes; a web page that is longer is no OTLP anyway."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP answer.

    `location` is set for redirects, without user info and query. `received_unix_s` is this machine's clock, for a
    `Retry-After` that names a date.
    """

    status: int
    content_type: str = ""
    body: bytes = b""
    retry_after: str = ""
    location: str = ""
    received_unix_s: float = 0.0
    secrets: Secrets = field(default=NO_SECRETS, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class GrpcReply:
    """A gRPC status, also one that the client library made itself (UNAVAILABLE for a refused connection).

    `code` is the name of the status code; `retry_after_s` the delay of a `google.rpc.RetryInfo`, if there was one;
    `body` the response message of an OK.
    """

    code: str
    details: str = ""
    retry_after_s: float | None = None
    body: bytes = b""
    secrets: Secrets = field(default=NO_SECRETS, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class NoReply:
    """No answer: no connection, no answer in time, or only half of one. Trying again may help."""

    reason: str
    secrets: Secrets = field(default=NO_SECRETS, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request could not even be made: a setting (URL, proxy, certificate file) has to be changed first."""

    reason: str
    secrets: Secrets = field(default=NO_SECRETS, compare=False, repr=False, kw_only=True)


Reply = HttpReply | GrpcReply | NoReply | NotSent
