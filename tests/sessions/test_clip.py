"""Values as OTLP and the backends can carry them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_bridge.sessions.clip import MAX_VALUE_BYTES, clip_json, clip_text, otlp_value, sendable_text

limits = st.integers(0, 200)
texts = st.text() | st.text("aé日😀\0\ud800\udc00", max_size=300)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(texts, inner, max_size=8),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("text", "max_bytes", "expected"),
    [
        ("abc", 3, "abc"),
        ("a" * 30, 30, "a" * 30),
        ("a" * 31, 30, "a" * 16 + "…[+15 bytes]"),
        ("é" * 20, 30, "é" * 8 + "…[+24 bytes]"),
        ("日" * 20, 30, "日" * 5 + "…[+45 bytes]"),
        ("😀" * 20, 30, "😀" * 4 + "…[+64 bytes]"),
        ("a" * 5000, 30, "a" * 14 + "…[+4986 bytes]"),
        ("a" * 30, 14, "…[+30 bytes]"),
        ("a" * 30, 13, "a" * 13),
        ("é" * 30, 11, "é" * 5),
        ("é" * 30, 1, ""),
        ("abc", 0, ""),
        ("abc", -1, ""),
    ],
)
def test_clipped_text(text: str, max_bytes: int, expected: str) -> None:
    """Text is cut between characters, with a marker that says how much is gone and is part of the limit."""

    assert clip_text(text, max_bytes) == expected


@given(texts, limits)
def test_clipped_text_fits(text: str, max_bytes: int) -> None:
    """Clipped text fits, can be sent, stays as it is when clipped again, and accounts for every byte of the text."""
    clipped = clip_text(text, max_bytes)
    whole = sendable_text(text).encode()
    kept, marker, rest = clipped.partition("…[+")

    assert len(clipped.encode()) <= max_bytes
    assert clip_text(clipped, max_bytes) == clipped
    assert whole.startswith(kept.encode()) or "…[+" in text
    if marker and "…[+" not in text:
        assert len(kept.encode()) + int(rest.removesuffix(" bytes]")) == len(whole)
    if len(whole) <= max_bytes:
        assert clipped == sendable_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", "abc"),
        ("é😀", "é😀"),
        ("a\ud800b", "a�b"),
        ("\udc00\ud800", "��"),
        ("\ud83d\ude00", "😀"),
        ("a\0b", "a␀b"),
    ],
)
def test_sendable_text(text: str, expected: str) -> None:
    """Halves of characters become U+FFFD, pairs of halves the character, and NUL its picture."""

    assert sendable_text(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (False, False),
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (0.5, 0.5),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ("a\ud800", "a�"),
        ([], "[]"),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        ({"b": 2**64, "a": "\ud800"}, '{"b":"18446744073709551616","a":"�"}'),
    ],
)
def test_attribute_value(value: object, expected: object) -> None:
    """A JSON value becomes what OTLP can carry: what has no type of its own there becomes text."""
    found = otlp_value(value)

    assert (type(found), found) == (type(expected), expected)


def test_endless_integer() -> None:
    """An integer too long for decimal digits is shown all the same, cut like any text."""
    found = otlp_value(10**10_000)

    assert isinstance(found, str)
    assert found.startswith("0x")
    assert len(found.encode()) <= MAX_VALUE_BYTES
    assert json.loads(clip_json({"n": 10**10_000}))["n"].startswith("0x")


@given(json_values, limits)
@example("\ud800" * 100, 20)
def test_any_value_fits(value: object, max_bytes: int) -> None:
    """Whatever the JSON value and the limit, an attribute's text fits and can be sent."""
    found = otlp_value(value, max_bytes)

    assert found is None or isinstance(found, bool | int | float | str)
    if isinstance(found, str) and not isinstance(value, float):
        assert len(found.encode()) <= max_bytes


@given(json_values, st.integers(2, 300))
def test_clipped_json_parses(value: object, max_bytes: int) -> None:
    """JSON that was shortened is still JSON, and within the limit."""
    text = clip_json(value, max_bytes)

    assert len(text.encode()) <= max_bytes
    assert json.dumps(json.loads(text))


@given(st.dictionaries(st.text("abcdef", max_size=8), texts, max_size=12), st.integers(24, 300))
def test_first_fields_are_kept(value: dict[str, str], max_bytes: int) -> None:
    """Of an object's fields the first are kept, in their order."""
    left = json.loads(clip_json(value, max_bytes))
    kept = [name for name in left if name != "…"]

    assert kept == list(value)[: len(kept)]


@given(st.dictionaries(st.text("abc"), st.integers(-5, 5) | st.text("xyz", max_size=5), max_size=5))
def test_json_that_fits_is_whole(value: dict[str, object]) -> None:
    """A value that fits is written compactly and as it is."""

    assert clip_json(value) == json.dumps(value, separators=(",", ":"))


def test_strings_are_shortened_first() -> None:
    """Of a call's arguments the long ones are shortened, and the short ones stay whole."""
    arguments = {
        "sessionId": "806a0589-7b86-490d-9928-679ab71012c1",
        "code": "x" * 5000,
        "note": "y" * 60,
        "args": [1, 2],
    }
    left = json.loads(clip_json(arguments, 300))

    assert {**left, "code": ""} == {**arguments, "code": ""}
    assert left["code"] == "x" * (len(left["code"]) - 14) + f"…[+{5014 - len(left['code'])} bytes]"
    assert len(clip_json(arguments, 300)) > 290


@pytest.mark.parametrize(
    ("value", "max_bytes", "expected"),
    [
        (list(range(1000)), 40, '[0,1,2,3,4,5,6,7,8,9,"…[+990 items]"]'),
        ({f"k{n}": n for n in range(1000)}, 40, '{"k0":0,"k1":1,"…":"[+998 fields]"}'),
        ({"a": "x" * 100}, 20, '""'),
        ({"a": 1}, 1, ""),
    ],
)
def test_lists_and_objects_are_shortened_next(value: object, max_bytes: int, expected: str) -> None:
    """Where short strings are not enough, the last items of lists and objects give way to their number."""

    assert clip_json(value, max_bytes) == expected


def test_odd_values() -> None:
    """Depth, cycles and values that are no JSON raise nothing."""
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    cycle: list[object] = []
    cycle += [cycle, cycle]

    assert json.loads(clip_json(deep))
    assert json.loads(clip_json(cycle))
    assert json.loads(clip_json({"a": b"x", 1: (2, 3), "c": ValueError("no")})) == {"a": "b'x'", "1": [2, 3], "c": "no"}


def test_megabytes_are_cut_as_well() -> None:
    """Long strings, long lists and wide trees are cut to the limit, as any value is."""
    for value in (
        "x" * 2_000_000,
        ["y" * 100] * 20_000,
        [[["z" * 50] * 30] * 30] * 30,
        {"\ud800" * 9: "\ud800" * 300_000},
    ):
        assert len(clip_json(value).encode()) <= MAX_VALUE_BYTES
