from __future__ import annotations

import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.export.console_transport import ConsoleTransport
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.reply import HttpReply
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.span import Span, SpanEvent, SpanKind, SpanLink, StatusCode
from otel_bridge.view.escape import shows_itself
from tests.export.spans import spans

REQUEST = RequestEncoder(Resource({"service.name": "x"}), Scope())


def printed(*some: Span) -> list[str]:
    stream = io.BytesIO()
    assert ConsoleTransport(stream).send(REQUEST.encode([SpanEncoder().encode(one) for one in some])) == HttpReply(200)
    return stream.getvalue().decode().splitlines()


def test_a_full_span() -> None:
    """Every field of a span is on its line, under a stable name and in a stable order."""
    one = Span(
        trace_id=0xABC,
        span_id=1,
        parent_id=2,
        name="tools/call x",
        kind=SpanKind.SERVER,
        start_ns=10,
        end_ns=20,
        attributes={"text": "ü\u2028", "flag": True, "count": -1, "ratio": 0.5, "list": ("a", "b")},
        events=(SpanEvent("hit", 15, {"line": 3}),),
        links=(SpanLink(5, 6, "a=b", {"k": "v"}),),
        status=StatusCode.ERROR,
        status_message="no",
        dropped_events=4,
        trace_state="c=d",
    )

    (line,) = printed(one)

    assert list(json.loads(line).items()) == [
        ("trace_id", "00000000000000000000000000000abc"),
        ("span_id", "0000000000000001"),
        ("parent_id", "0000000000000002"),
        ("trace_state", "c=d"),
        ("name", "tools/call x"),
        ("kind", "SERVER"),
        ("start_ns", 10),
        ("end_ns", 20),
        ("status", "ERROR"),
        ("status_message", "no"),
        ("attributes", {"text": "ü\u2028", "flag": True, "count": -1, "ratio": 0.5, "list": ["a", "b"]}),
        ("events", [{"name": "hit", "time_ns": 15, "attributes": {"line": 3}}]),
        ("dropped_events", 4),
        (
            "links",
            [
                {
                    "trace_id": "00000000000000000000000000000005",
                    "span_id": "0000000000000006",
                    "trace_state": "a=b",
                    "attributes": {"k": "v"},
                }
            ],
        ),
        ("resource", {"service.name": "x"}),
    ]


def test_what_json_cannot_hold() -> None:
    """Infinities are text and NaN is null: every line is JSON."""
    (line,) = printed(Span(1, 2, 0, "x", SpanKind.INTERNAL, 3, 4, {"a": math.inf, "b": -math.inf, "c": math.nan}))

    assert json.loads(line)["attributes"] == {"a": "inf", "b": "-inf", "c": None}


@given(st.lists(spans(), max_size=3))
def test_a_line_a_span(some: list[Span]) -> None:
    """Any span is one line of JSON, and every character on it shows itself: none moves a cursor or turns text round."""
    stream = io.BytesIO()
    ConsoleTransport(stream).send(REQUEST.encode([SpanEncoder().encode(one) for one in some]))

    lines = stream.getvalue().split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["span_id"] for line in lines] == [f"{one.span_id:016x}" for one in some]
    assert all(shows_itself(char) for line in lines for char in line.decode())


def test_what_a_terminal_would_obey_is_escaped_and_means_the_same() -> None:
    """Bidi overrides, invisible characters and tags are JSON escapes; letters of any script stay."""
    text = "ü日🎉 \u202e\u200b\ufeff\U000e0041"
    (line,) = printed(Span(1, 2, 0, text, SpanKind.INTERNAL, 3, 4, {}))

    assert json.loads(line)["name"] == text
    assert r'"ü日🎉 \u202e\u200b\ufeff\udb40\udc41"' in line


def test_nobody_reads() -> None:
    """A closed pipe is an error for the caller, who ends; it is no backend that may come back."""

    class Closed(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        ConsoleTransport(Closed()).send(b"")


def test_description() -> None:
    """It says where the spans go, needs no proxy, and leaves the stream open."""
    stream = io.BytesIO()
    transport = ConsoleTransport(stream)
    transport.close()

    assert (transport.endpoint, transport.proxy, stream.closed) == ("standard output", "", False)
