"""What can be wrong with a line."""

from __future__ import annotations

from enum import StrEnum


class Flaw(StrEnum):
    """Why a line that looked structured became no entry; the values are what people read."""

    NOT_UTF8 = "not UTF-8"
    NOT_JSON = "not JSON"
    TRAILING_COMMA = "not JSON: a trailing comma"
    NOT_OBJECT = "not a JSON object"
    NO_TIME = "no usable timestamp"
    TOO_LONG = "over the line limit"
    TOO_DEEP = "nested too deeply"
