"""Makes any value one that OTLP and the backends behind it can carry, within a number of bytes.

Values must be redacted before they come here: a secret that is cut in two has no shape to be known by.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

import orjson

from otel_bridge.sessions.span import AttributeValue

MAX_VALUE_BYTES: Final = 2048
"""Tempo cuts attribute values there (its default `max_attribute_bytes`)."""

_LONE_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
_INT64: Final = range(-(1 << 63), 1 << 63)
_MOST_DECIMAL_BITS: Final = 2000
"""An integer of more bits is shown as hexadecimal digits: Python refuses to turn a very long one into decimal ones."""

_MAX_DEPTH: Final = 200
_FEWEST_STRING_BYTES: Final = 24


def sendable_text(text: str) -> str:
    """The text with lone surrogates as U+FFFD (UTF-8 has none) and NUL as U+2400 (PostgreSQL refuses it)."""
    return _without_surrogates(text).replace("\0", "␀")


def _without_surrogates(text: str) -> str:
    if _LONE_SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clip_text(text: str, max_bytes: int = MAX_VALUE_BYTES) -> str:
    """The text as far as `max_bytes` of UTF-8 go, cut between characters, and how much was cut: `…[+123 bytes]`.

    The marker is part of the limit; where even that does not fit, the text is cut without one.
    """
    if len(text) <= max_bytes and text.isascii() and "\0" not in text:
        return text  # nearly every text
    text = sendable_text(text)
    if len(text) * 4 <= max_bytes:
        return text
    return _clip_encoded(text.encode(), max_bytes)


def _clip_encoded(data: bytes, max_bytes: int) -> str:
    if len(data) <= max_bytes:
        return data.decode()
    room_bytes = max_bytes - len(_cut_marker(len(data)).encode())
    if room_bytes < 0:
        return data[: max(max_bytes, 0)].decode(errors="ignore")
    kept = data[:room_bytes].decode(errors="ignore")
    return kept + _cut_marker(len(data) - len(kept.encode()))


def _cut_marker(cut_bytes: int) -> str:
    return f"…[+{cut_bytes} bytes]"


def otlp_value(value: object, max_bytes: int = MAX_VALUE_BYTES) -> AttributeValue | None:
    """A JSON value as an attribute's value; None for null, which leaves the attribute out.

    Objects and lists become JSON text; integers beyond 64 bits and floats that are no number become text, because the
    SDK drops such an attribute with a traceback that shows the value.
    """
    if isinstance(value, str):
        return clip_text(value, max_bytes)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else clip_text(_digits(value), max_bytes)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return clip_json(value, max_bytes)


def clip_json(value: object, max_bytes: int = MAX_VALUE_BYTES) -> str:
    """A JSON value as compact JSON text of at most `max_bytes` of UTF-8 that still parses; keys keep their order.

    What does not fit is shortened first in its strings, the longest ones most, each with a marker; then in its lists
    and objects, whose last item says how many more there were. Where not even that fits the text is `""`, and empty
    for a limit below 2.
    """
    try:
        text = orjson.dumps(value)
    except TypeError:  # a long integer, a lone surrogate, too deep, or no JSON value
        pass
    else:
        if len(text) <= max_bytes:
            return text.decode()
    return _shortened(value, max_bytes).decode()


def _shortened(value: object, max_bytes: int) -> bytes:
    most_items = max(max_bytes, 0)
    while True:
        fitting = _with_longest_strings(value, most_items, max_bytes)
        if fitting is not None:
            return fitting
        if most_items == 0:
            return b'""' if max_bytes >= 2 else b""
        most_items = min(most_items, 256) // 2


def _with_longest_strings(value: object, most_items: int, max_bytes: int) -> bytes | None:
    """The text with no more than so many items a container and the longest strings that fit; None if none do."""

    encoded: dict[str, bytes] = {}

    def text_with(string_bytes: int) -> bytes:
        return orjson.dumps(_Shortening(string_bytes, most_items, max_bytes, encoded).apply(value, 0))

    if len(text_with(_FEWEST_STRING_BYTES)) > max_bytes:
        return None
    lengths = range(_FEWEST_STRING_BYTES + 1, max(max_bytes, _FEWEST_STRING_BYTES) + 1)
    too_long = bisect_left(lengths, True, key=lambda string_bytes: len(text_with(string_bytes)) > max_bytes)
    return text_with(_FEWEST_STRING_BYTES + too_long)


class _Shortening:
    """A copy of a value that JSON can express, with short strings and few items.

    No more values are copied than the text could have bytes, so that the work is bounded whatever the value is.
    `encoded` keeps the bytes of strings for the next try with another limit.
    """

    def __init__(self, string_bytes: int, most_items: int, most_values: int, encoded: dict[str, bytes]) -> None:
        self._string_bytes = string_bytes
        self._most_items = most_items
        self._values_left = most_values
        self._encoded = encoded

    def apply(self, value: object, depth: int) -> object:
        self._values_left -= 1
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int():
                return value if value in _INT64 else self._text(_digits(value))
            case float():
                return value if math.isfinite(value) else str(value)
            case _ if depth >= _MAX_DEPTH:
                return "…"
            case Mapping():
                return self._object(value, depth + 1)
            case list() | tuple():
                return self._list(value, depth + 1)
        return self._text(str(value))

    def _object(self, fields: Mapping[object, object], depth: int) -> dict[str, object]:
        copied: dict[str, object] = {}
        for number, (name, value) in enumerate(fields.items()):
            if number == self._most_items or self._values_left <= 0:
                copied["…"] = f"[+{len(fields) - number} fields]"
                break
            copied[self._text(str(name))] = self.apply(value, depth)
        return copied

    def _list(self, items: list[object] | tuple[object, ...], depth: int) -> list[object]:
        copied: list[object] = []
        for number, item in enumerate(items):
            if number == self._most_items or self._values_left <= 0:
                copied.append(f"…[+{len(items) - number} items]")
                break
            copied.append(self.apply(item, depth))
        return copied

    def _text(self, text: str) -> str:
        data = self._encoded.get(text)
        if data is None:
            data = self._encoded[text] = _without_surrogates(text).encode()
        return _clip_encoded(data, self._string_bytes)


def _digits(number: int) -> str:
    return str(number) if number.bit_length() <= _MOST_DECIMAL_BITS else hex(number)
