"""Times as people read them."""

from __future__ import annotations

import pytest

from otel_bridge.view.units import duration, moment, span_duration

MS = 1_000_000
S = 1_000 * MS


@pytest.mark.parametrize(
    ("duration_ns", "shown"),
    [
        (0, "0 µs"),
        (1, "0.001 µs"),
        (1_000, "1 µs"),
        (850_400, "850 µs"),
        (999_499, "999 µs"),
        (999_500, "1 ms"),
        (94 * MS, "94 ms"),
        (1_530_000, "1.53 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (4_341 * MS, "4.34 s"),
        (9_994_999_999, "9.99 s"),
        (9_995 * MS, "10.0 s"),
        (31_600 * MS, "31.6 s"),
        (59_949 * MS, "59.9 s"),
        (59_950 * MS, "1 min 00 s"),
        (65 * S, "1 min 05 s"),
        (3_599 * S, "59 min 59 s"),
        (3_600 * S, "1 h 00 min"),
        (7_380 * S, "2 h 03 min"),
        (86_399 * S, "1 d 00 h"),
        (100 * 3_600 * S, "4 d 04 h"),
    ],
)
def test_duration(duration_ns: int, shown: str) -> None:
    """A duration has the digits that matter and the unit that fits, and no step falls between two units."""
    assert duration(duration_ns) == shown


def test_duration_in_ascii() -> None:
    """Outputs without Unicode get `us`."""
    assert duration(7_000, ascii_only=True) == "7 us"


def test_moment() -> None:
    """A Unix time is shown as UTC to the millisecond, which is cut and not rounded."""
    assert moment(1_796_071_983_998_999_999) == "2026-11-30 20:53:03.998 UTC"


def test_a_span_of_one_microsecond_is_shorter_than_the_log_can_tell() -> None:
    """The least length of a span is no measurement, and is not shown as one."""
    assert (span_duration(1_000), span_duration(1_001)) == ("<1 ms", "1 µs")
