"""Where moments and stretches fall on the time axis."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.view.axis import TICK_CELLS, Axis, bar, lane

S = 1_000_000_000
CELLS = st.integers(20, 200)
LENGTHS = st.integers(1, 10**17)


@pytest.mark.parametrize(
    ("start_s", "end_s", "halves"),
    [
        (0, 10, range(20)),
        (0, 5, range(10)),
        (5, 10, range(10, 20)),
        (2.5, 3, range(5, 6)),
        (2.6, 2.6, range(5, 6)),
        (2.6, 3.1, range(5, 7)),
        (10, 10, range(19, 20)),
        (-3, 30, range(20)),
        (20, 30, range(19, 20)),
    ],
)
def test_a_stretch_covers_the_half_cells_that_it_touches(start_s: float, end_s: float, halves: range) -> None:
    """Ends are rounded outwards to half cells, a moment has one, and what lies outside sticks to the edge."""
    axis = Axis(0, 10 * S, 10)

    assert axis.halves(round(start_s * S), round(end_s * S)) == halves


@given(cells=CELLS, length_ns=LENGTHS, data=st.data())
def test_every_stretch_is_visible_and_inside(cells: int, length_ns: int, data: st.DataObject) -> None:
    """However short a stretch and long the axis, it has at least half a cell, and none beyond the axis."""
    start_ns = data.draw(st.integers(0, length_ns))
    end_ns = data.draw(st.integers(start_ns, length_ns))

    halves = Axis(7, 7 + length_ns, cells).halves(7 + start_ns, 7 + end_ns)

    assert len(halves) >= 1
    assert halves.start >= 0
    assert halves.stop <= cells * 2


def test_bar_draws_halves_and_whole_cells() -> None:
    """Two halves of a cell are a whole one; a single half keeps its side."""
    assert bar([1, 2, 3, 4], "━", "╸", "╺") == [(0, "╺"), (1, "━"), (2, "╸")]


@pytest.mark.parametrize(
    ("length_ns", "labels"),
    [
        (0, ["0"]),
        (4 * S, ["0", "1 s", "2 s", "3 s", "4 s"]),
        (900_000_000, ["0", "200 ms", "400 ms", "600 ms", "800 ms"]),
        (1_400_000_000, ["0", "0.5 s", "1 s"]),
        (50_000, ["0", "10 µs", "20 µs", "30 µs", "40 µs", "50 µs"]),
        (90 * S, ["0", "20 s", "40 s", "60 s", "80 s"]),
        (600 * S, ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]),
        (9 * 3600 * S, ["0", "2 h", "4 h", "6 h", "8 h"]),
        (40 * 24 * 3600 * S, ["0", "8 d", "16 d", "24 d", "32 d", "40 d"]),
    ],
)
def test_ticks_stand_at_round_moments(length_ns: int, labels: list[str]) -> None:
    """Ticks are at multiples that people count in, with the unit that fits the whole axis."""
    assert [label for _, label in Axis(5, 5 + length_ns, 60).ticks()] == labels


@given(cells=CELLS, length_ns=LENGTHS)
def test_ticks_leave_room_for_their_labels(cells: int, length_ns: int) -> None:
    """There are few ticks, no two of them close to each other, and no label is longer than the distance."""
    ticks = Axis(0, length_ns, cells).ticks()

    places = [cell for cell, _ in ticks]
    assert all(after - before >= TICK_CELLS - 1 for before, after in pairwise(places))
    assert max(len(label) for _, label in ticks) < TICK_CELLS


def test_lane_shows_what_fills_most_of_a_cell() -> None:
    """A cell shows its longest stretch; a short one shows where nothing else is; a gap stays empty."""
    axis = Axis(0, 10 * S, 10)
    stretches = [(0, 25 * S // 10, "a"), (25 * S // 10, 28 * S // 10, "b"), (5 * S, 5 * S + 1, "c")]

    assert lane(axis, stretches) == ["a", "a", "a", None, None, "c", None, None, None, None]
