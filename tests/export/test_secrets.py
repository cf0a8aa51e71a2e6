from __future__ import annotations

import base64
import json
from dataclasses import fields
from html import escape
from urllib.parse import quote

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_bridge.export.reply import GrpcReply, HttpReply, NoReply, NotSent, Reply
from otel_bridge.export.secrets import NO_SECRETS, Secrets
from otel_bridge.export.verdict import judge

TOKEN = "SEKRETabcdef123"
QUOTED = 'SEK"RET&12'
BEARER = Secrets({"authorization": f"Bearer {TOKEN}"})


def basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("headers", "url", "said"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, "", f"bad token {TOKEN}"),
        ({"authorization": f"Bearer {TOKEN}"}, "", f"{{'Authorization': 'Bearer {TOKEN}'}}"),
        ({"authorization": f"Basic {basic('joe:SEKRET')}"}, "", basic("joe:SEKRET")),
        ({"authorization": f"Basic {basic('joe:SEKRET')}"}, "", "no such password: SEKRET"),
        ({"authorization": f"Bearer%20{TOKEN}"}, "", f"got Bearer {TOKEN}"),
        ({"x-key": "SEK/RET+ab=="}, "", "at /login/SEK%2FRET%2bab%3D%3D"),
        ({"x-key": "SEK%2FRET"}, "", "got SEK/RET"),
        ({"x-key": QUOTED}, "", "got " + json.dumps(QUOTED)),
        ({"x-key": QUOTED}, "", f"<p>{escape(QUOTED)}</p>"),
        ({"x-key": "SEK/RET12"}, "", r"got SEK\/RET12 or SEK\u002FRET12"),
        ({"cookie": "id=SEKRET12; team=green-team"}, "", "no session SEKRET12"),
        ({}, "http://joe:SEKRET@host", "SEKRET"),
        ({}, "http://joe:SEK%23RET@host", "joe:SEK#RET and SEK%23RET"),
        ({}, "http://joe:SEK%23RET@host", basic("joe:SEK#RET")),
        ({}, "http://joe:SEKRET@host", basic("joe:SEKRET")),
        ({}, "http://SEKRET@host", "key SEKRET"),
    ],
)
def test_masked(headers: dict[str, str], url: str, said: str) -> None:
    """A secret is masked as it was sent, in its parts, decoded, and in the escapes of URLs, JSON and HTML."""
    masked = Secrets(headers, [url]).masked(said)

    assert "..." in masked
    assert "SEK" not in masked
    assert basic("joe:SEK")[:6] not in masked


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"x-tenant": "prod"}, "no such product"),
        ({"x-tenant": "1"}, "1 span is too old"),
        ({"authorization": f"Bearer {TOKEN}"}, "Bearer tokens are wanted"),
        ({"x-note": "send it to the team"}, "the team is over its quota"),
        ({}, "a plain text"),
    ],
)
def test_not_masked(headers: dict[str, str], said: str) -> None:
    """What happens to be a part of a word, a scheme or a short word of a longer value stays readable."""
    assert Secrets(headers).masked(said) == said


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40), st.text(max_size=20))
def test_any_secret(secret: str, around: str) -> None:
    """Whatever a secret is made of, it is found as it is, percent-encoded, in JSON and in HTML."""
    secrets = Secrets({"x-key": secret})
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], escape(secret)):
        assert secrets.masked(f"{around} {form} {around}").endswith(f"... {secrets.masked(around)}")


def partial(count: int) -> bytes:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = count
    response.partial_success.error_message = f"sent by {TOKEN}"
    return response.SerializeToString()


def replies() -> list[Reply]:
    """A reply for each place in which a backend's words can stand, with the token in it."""
    json_partial = json.dumps({"partialSuccess": {"rejectedSpans": 1, "errorMessage": TOKEN}}).encode()
    status = Status(code=3, message=f"no {TOKEN}").SerializeToString()
    out: list[Reply] = [
        HttpReply(200, f"text/{TOKEN}", b"zz"),
        HttpReply(200, "", partial(0)),
        HttpReply(200, "application/x-protobuf", partial(1)),
        HttpReply(200, "application/json", json_partial),
        HttpReply(302, location=f"http://host/login/{TOKEN}"),
        *(HttpReply(code, "text/plain", f"got {TOKEN}".encode()) for code in (100, 400, 401, 404, 413, 429, 500, 503)),
        *(HttpReply(code, "application/x-protobuf", status) for code in (400, 401, 413, 503)),
        *(
            HttpReply(400, "application/json", body.encode())
            for body in (f'{{"message": "{TOKEN}"}}', TOKEN, f'"{TOKEN}"')
        ),
        HttpReply(400, "text/plain", b"x" * 190 + b" " + TOKEN.encode()),
        GrpcReply("OK", body=partial(0)),
        GrpcReply("OK", body=partial(1)),
        *(
            GrpcReply(code, f"no {TOKEN}")
            for code in ("INVALID_ARGUMENT", "UNAUTHENTICATED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE")
        ),
        GrpcReply("UNKNOWN", f"Received http2 header with status: {TOKEN}"),
        NoReply(f"the answer cannot be read ({TOKEN})"),
        NotSent(f"bad header {TOKEN}"),
    ]
    return out


@pytest.mark.parametrize("reply", replies(), ids=repr)
def test_no_verdict_shows_a_secret(reply: Reply) -> None:
    """Every word of a backend is masked on its way into a verdict, also one that is cut in the middle."""
    values = {one.name: getattr(reply, one.name) for one in fields(reply)}
    verdict = judge(type(reply)(**{**values, "secrets": BEARER}))

    assert "sekr" in repr(judge(reply)).lower()  # the place is one that is shown
    assert "sekr" not in repr(verdict).lower()


def test_secrets_are_not_shown() -> None:
    """Neither the secrets nor a reply that carries them have a secret in their `repr`, and replies compare without."""
    reply = HttpReply(200, secrets=BEARER)

    assert TOKEN not in repr(BEARER) + repr(reply)
    assert reply == HttpReply(200, secrets=NO_SECRETS)
