"""One line of the log -> what it says, or what is wrong with it."""

from __future__ import annotations

import json
import math
import re
from typing import Final

import orjson

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.kinds import KNOWN_KINDS, split_kind, split_state_change
from otel_bridge.entries.record_names import drop_record_names
from otel_bridge.entries.times import time_ms

MAX_DEPTH: Final = 128
"""Nesting that is still decoded. Far above what servers write, and far below what makes a parser, `orjson.dumps`
(254) or a walk over the value give up, so that nothing behind this point has to care."""

_ALIKE: Final = bytes.maketrans(b"123456789[", b"000000000{")
_BEYOND_64_BITS: Final = b"0" * 19
_LONGEST_INTEGER: Final = 640
"""Digits that Python turns into an integer whatever its `int_max_str_digits` is set to."""

_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
_BRACKETS_OUTSIDE_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
_TRAILING_COMMAS: Final = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|,[ \t\r\n]*+(?=[}\]])', re.DOTALL)


def decode_line(line: bytes) -> Entry | StateChange | Flaw | None:
    """What a line says that passed the bytes test (`kinds.STRUCTURED_LINE`); without its newline.

    Gives the entry or state change, None if the line turns out to be unstructured, or the flaw that makes it
    unusable. Never raises, whatever the bytes are.
    """
    value = decode_json(line)
    if isinstance(value, dict):
        return interpret(value)
    return value if isinstance(value, Flaw) else Flaw.NOT_OBJECT


def interpret(fields: dict[str, object]) -> Entry | StateChange | Flaw | None:
    """What a decoded line is: an entry, a state change, None if unstructured, `Flaw.NO_TIME` without a usable time.

    `fields` is the whole line's object; it is taken over: an entry keeps it, without `message` and `timestamp` and
    without what a Python logger writes of its own (`record_names`).
    Only the top level counts: clients choose what is nested below it.
    """
    message = fields.get("message")
    if not isinstance(message, str):
        return None
    kind = (message, "") if message in KNOWN_KINDS else split_kind(message)
    if kind is None:
        change = split_state_change(message)
        if change is None:
            return None
        at_ms = time_ms(fields.get("timestamp"))
        return Flaw.NO_TIME if at_ms is None else StateChange(*change, at_ms)
    at_ms = time_ms(fields.pop("timestamp", None))
    if at_ms is None:
        return Flaw.NO_TIME
    del fields["message"]
    drop_record_names(fields)
    return Entry(kind[0], kind[1], at_ms, fields)


def decode_json(text: bytes) -> object:
    """The value of JSON text, decoded strictly, or a `Flaw` (which no JSON value is).

    Lone surrogate escapes (`"\\udcff"`, which JavaScript writes when it cuts a string inside a character) become
    U+FFFD in keys and values: neither UTF-8 nor OTLP can carry them. Integers keep every digit; one of more than 640
    digits stays text. NaN, infinities and numbers beyond a double are refused.
    """
    alike = text.translate(_ALIKE)  # one digit and one bracket for all
    if len(text) > 2 * MAX_DEPTH and alike.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return Flaw.TOO_DEEP
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _decode_leniently(text)
    if alike.find(_BEYOND_64_BITS) >= 0:  # half the time of `in`
        return _decode_leniently(text)  # orjson would round an integer that needs more than 64 bits
    return value


def _decode_leniently(text: bytes) -> object:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return Flaw.NOT_UTF8
    try:
        return _without_surrogates(_loads(decoded))
    except ValueError:
        return _named_flaw(decoded)


def _named_flaw(text: str) -> Flaw:
    """A trailing comma is named only where it is all that is wrong; the line is still not used."""
    mended = _TRAILING_COMMAS.sub(lambda found: found[1] or "", text)
    if mended == text:
        return Flaw.NOT_JSON
    try:
        _loads(mended)
    except ValueError:
        return Flaw.NOT_JSON
    return Flaw.TRAILING_COMMA


def _loads(text: str) -> object:
    """The standard library's decoder, as strict as orjson about everything but surrogates; raises ValueError."""
    value: object = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_refuse)
    return value


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else digits


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number beyond a double")
    return number


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _without_surrogates(value: object) -> object:
    match value:
        case str():
            return _SURROGATE.sub("�", value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_SURROGATE.sub("�", key): _without_surrogates(item) for key, item in value.items()}
    return value


def _depth(text: bytes) -> int:
    deepest = depth = 0
    for token in _BRACKETS_OUTSIDE_STRINGS.findall(text):
        if token in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif token in b"}]":
            depth -= 1
    return deepest
