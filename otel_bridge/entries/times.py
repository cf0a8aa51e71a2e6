"""Timestamps of the log as Unix milliseconds."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

NS_PER_MS: Any = 1_000_000
"""Neither an `int` nor `Final` for the compiler's eyes: its own product of integers as large as a time ends the process
when a signal's handler raises within it, as that of Ctrl-C does. This product is Python's."""

EARLIEST_MS: Final = 946_684_800_000
"""2000-01-01T00:00:00Z: the first usable time."""

LATEST_MS: Final = 7_289_654_399_999
"""2200-12-31T23:59:59.999Z: the last usable time; as nanoseconds it still fits in 64 bits."""

_ISO_8601: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):?([0-9]{2})?)"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def time_ms(timestamp: object) -> int | None:
    """A timestamp as whole Unix milliseconds, or None if it is not usable.

    Takes what servers write: a number of Unix ms (0.24.2) or ISO 8601 text with `Z` or an offset (the specification,
    newer servers). What is finer than a millisecond is cut off, as JavaScript's `Date.parse` does. None for other
    types, for text without an offset (its time zone is unknown), and for times outside the years 2000 to 2200.
    """
    if type(timestamp) is int:  # what the server writes
        return timestamp if EARLIEST_MS <= timestamp <= LATEST_MS else None
    match timestamp:
        case bool():
            return None
        case int():
            found = timestamp
        case float():
            if not math.isfinite(timestamp):
                return None
            found = math.floor(timestamp)
        case str():
            parsed = _iso_ms(timestamp)
            if parsed is None:
                return None
            found = parsed
        case _:
            return None
    return found if EARLIEST_MS <= found <= LATEST_MS else None


def _iso_ms(text: str) -> int | None:
    found = _ISO_8601.fullmatch(text)
    if found is None:
        return None
    at_ms = _unix_ms(found[1])
    if at_ms is None:
        return None
    if found[3] is not None:
        hours, minutes = int(found[4]), int(found[5] or 0)
        if hours > 23 or minutes > 59:
            return None
        offset_ms = (hours * 60 + minutes) * 60_000
        at_ms += -offset_ms if found[3] == "+" else offset_ms
    return at_ms + int(((found[2] or "") + "000")[:3])


@lru_cache(maxsize=1024)
def _unix_ms(date_and_time: str) -> int | None:
    """Neighbouring lines share their second, so the calendar is asked once for each."""
    try:
        return (datetime.fromisoformat(date_and_time).replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
    except ValueError:
        return None
