"""Timestamps of the log."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.times import EARLIEST_MS, LATEST_MS, time_ms

USABLE = [
    (1_796_071_983_998, 1_796_071_983_998),
    (1_796_071_983_998.0, 1_796_071_983_998),
    (1_796_071_983_998.9, 1_796_071_983_998),
    ("2026-11-30T20:53:03.986Z", 1_796_071_983_986),
    ("2026-11-30T20:53:03Z", 1_796_071_983_000),
    ("2026-11-30T20:53:03.9Z", 1_796_071_983_900),
    ("2026-11-30T20:53:03,98Z", 1_796_071_983_980),
    ("2026-11-30T20:53:03.986999999999Z", 1_796_071_983_986),
    ("2026-11-30T22:53:03.986+02:00", 1_796_071_983_986),
    ("2026-11-30T15:23:03.986-0530", 1_796_071_983_986),
    ("2026-11-30T21:53:03.986+01", 1_796_071_983_986),
    ("2000-01-01T00:00:00Z", EARLIEST_MS),
    ("2200-12-31T23:59:59.999Z", LATEST_MS),
]

UNUSABLE: list[object] = [
    None,
    True,
    {},
    [],
    "",
    "now",
    "1796071983998",
    1_796_071_983,  # seconds
    1_796_071_983_998_000_000,  # nanoseconds
    -1,
    0,
    10**400,
    math.nan,
    math.inf,
    "2026-11-30T20:53:03.986",  # the zone is unknown
    "2026-11-30 20:53:03Z",
    "2026-11-30",
    "2026-13-30T20:53:03Z",
    "2026-02-29T20:53:03Z",
    "2026-11-30T25:53:03Z",
    "2026-11-30T20:53:03+24:00",
    "2026-11-30T20:53:03+01:60",
    "٢٠٢٦-11-30T20:53:03Z",
    "1999-12-31T23:59:59.999Z",
    "2201-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    " 2026-11-30T20:53:03Z",
]


@pytest.mark.parametrize(("timestamp", "expected_ms"), USABLE)
def test_usable(timestamp: object, expected_ms: int) -> None:
    """Unix ms and ISO 8601 with a zone are whole Unix ms; what is finer is cut off, as JavaScript does."""

    assert time_ms(timestamp) == expected_ms


@pytest.mark.parametrize("timestamp", UNUSABLE, ids=repr)
def test_unusable(timestamp: object) -> None:
    """Anything else is no time: other types, text without a zone, days that do not exist, other centuries."""

    assert time_ms(timestamp) is None


@given(
    st.integers(EARLIEST_MS, LATEST_MS),
    st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_iso_text_means_its_instant(unix_ms: int, zone: timezone) -> None:
    """Both forms of one instant are the same time, in whatever zone the text is."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=unix_ms)
    if not 1 <= instant.year <= 9998:
        return

    assert time_ms(instant.astimezone(zone).isoformat(timespec="milliseconds")) == time_ms(unix_ms) == unix_ms
