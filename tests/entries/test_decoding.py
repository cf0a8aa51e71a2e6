"""What one line says, or what is wrong with it."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_bridge.entries.decoding import MAX_DEPTH, decode_json, decode_line
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.flaw import Flaw
from tests.entries.lines import SID, T_MS, line, nested

CALL = b'"message":"tool:call","timestamp":1796071983998'

FLAWED = [
    (b"{%s" % CALL, Flaw.NOT_JSON),
    (b"{%s} x" % CALL, Flaw.NOT_JSON),
    (b"{%s}{}" % CALL, Flaw.NOT_JSON),
    (b'  "message": "tool:call",', Flaw.NOT_JSON),
    (b'{%s,"a":NaN}' % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":-Infinity}' % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":1e999}' % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":"\\udcff","b":1e999}' % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":"\x01"}' % CALL, Flaw.NOT_JSON),
    (b"\xef\xbb\xbf{%s}" % CALL, Flaw.NOT_JSON),
    (b"{%s,}" % CALL, Flaw.TRAILING_COMMA),
    (b'{%s,"a":[1,2, ],\t}' % CALL, Flaw.TRAILING_COMMA),
    (b'{%s,"a":",}",}' % CALL, Flaw.TRAILING_COMMA),
    (b'{%s,"a":",}"' % CALL, Flaw.NOT_JSON),
    (b"{%s,,}" % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":nope,}' % CALL, Flaw.NOT_JSON),
    (b'{%s,"a":"\xff"}' % CALL, Flaw.NOT_UTF8),
    (b'{%s,"a":"\xed\xb3\xbf"}' % CALL, Flaw.NOT_UTF8),
    (b"[{%s}]" % CALL, Flaw.NOT_OBJECT),
    (line("tool:call", None), Flaw.NO_TIME),
    (line("tool:call", "yesterday"), Flaw.NO_TIME),
    (line("debug:memory", 5), Flaw.NO_TIME),
    (line(f"[SM _updateSessionState {SID}] State change: a -> b", None), Flaw.NO_TIME),
    (nested(MAX_DEPTH + 1), Flaw.TOO_DEEP),
    (nested(100_000), Flaw.TOO_DEEP),
    (b'{%s,"a":"\\udcff","b":%s' % (CALL, b"[" * 100_000), Flaw.TOO_DEEP),
]


@pytest.mark.parametrize(("data", "flaw"), FLAWED, ids=lambda value: repr(value)[:60])
def test_flaw_is_named(data: bytes, flaw: Flaw) -> None:
    """A line that looks structured and is of no use says why."""

    assert decode_line(data.rstrip(b"\n")) is flaw


def test_specification_form() -> None:
    """The specification's form of an entry: ISO time, its own key order, white space; unknown fields are kept."""
    data = (
        b'{ "timestamp": "2025-01-06T16:15:00.123Z", "level": "info", "namespace": "debug-mcp:tools", '
        b'"message": "tool:call", "tool": "set_breakpoint", "newField": [1, {"a": null}] }\r'
    )

    assert decode_line(data) == Entry(
        "tool:call",
        "",
        1_736_180_100_123,
        {
            "level": "info",
            "namespace": "debug-mcp:tools",
            "tool": "set_breakpoint",
            "newField": [1, {"a": None}],
        },
    )


def test_glued_text() -> None:
    """Text glued behind the kind is kept apart from it."""

    assert decode_line(line("tool:error boom", tool="x")) == Entry(
        "tool:error", "boom", T_MS, {"level": "info", "tool": "x"}
    )


def test_state_line() -> None:
    """A state line is a change of a session's state, at its ISO time."""
    data = line(f"[SM _updateSessionState {SID}] State change: running -> paused", "2026-11-30T20:53:03.998Z")

    assert decode_line(data) == StateChange(SID, "running", "paused", T_MS)


@pytest.mark.parametrize(
    "data",
    [
        line("[Server] Sending", request={"message": "tool:call"}),
        line(f"[SM _updateSessionState {SID}] State change: a -> b now"),
        line(None, a={"message": "tool:call"}),
        line(7, a={"message": "tool:call"}),
        b'{"request":{"message":"tool:call"}}',
    ],
)
def test_only_the_top_level_counts(data: bytes) -> None:
    """What a client nested below the top level makes no entry, and is no error either."""

    assert decode_line(data) is None


def test_lone_surrogates_are_replaced() -> None:
    """Halves of characters become U+FFFD at any depth, in keys and values; whole pairs stay."""
    data = b'{%s,"\\ud83d":["\\udcff",{"a":"x\\ud83d... (truncated)"}],"b":"\\ud83d\\ude00 \xf0\x9f\x98\x80"}' % CALL

    assert decode_line(data) == Entry("tool:call", "", T_MS, {"�": ["�", {"a": "x�... (truncated)"}], "b": "😀 😀"})


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("9223372036854775808", 2**63),
        ("18446744073709551616", 2**64),
        ("-9223372036854775809", -(2**63) - 1),
        ("1180591620717411300000", 1180591620717411300000),
        ("1" * 640, int("1" * 640)),
        ("1" * 5000, "1" * 5000),
        ("0.1234567890123456789012", 0.1234567890123456789012),
    ],
)
def test_long_numbers(digits: str, expected: object) -> None:
    """No digit of an integer is lost, however long it is; one that Python would not turn into an integer stays text."""

    assert decode_json(b'{"a":%s}' % digits.encode()) == {"a": expected}


def test_deepest_line_that_is_read() -> None:
    """Nesting is read up to the limit, in strict and in lenient decoding, and can be written again."""
    value = decode_json(nested(MAX_DEPTH))

    assert isinstance(value, dict)
    assert orjson.dumps([[value]])
    assert isinstance(decode_json(nested(MAX_DEPTH).replace(b'"a"', b'"\\udcff"')), dict)


def test_brackets_in_strings_are_no_depth() -> None:
    """Brackets inside strings do not count as nesting."""
    data = b'{%s,"a":"%s\\"[","b":[{"c":"%s"}]}' % (CALL, b"[" * 1000, b"{" * 1000)

    assert isinstance(decode_line(data), Entry)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_means_what_the_standard_library_says(value: object) -> None:
    """Any JSON value is decoded as it was encoded, whichever decoder does it."""

    assert decode_json(json.dumps(value).encode()) == value


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b'"\\')
@example(b'{"message":"tool:call","timestamp":')
@example(b'{"message":"tool:call"' + b',"' * 1000)
def test_never_raises(data: bytes) -> None:
    """Any bytes at all give an answer."""
    answer = decode_line(data)

    assert answer is None or isinstance(answer, Entry | StateChange | Flaw)
