"""The time axis of a waterfall: where a moment falls, and what a stretch of time looks like there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_MS = 1_000_000
_S = 1_000 * _MS
_MIN = 60 * _S
_H = 60 * _MIN
_ROUND_STEPS_NS = (
    *(digit * 10**power for power in range(3, 10) for digit in (1, 2, 5)),
    *(n * _S for n in (10, 20)),
    *(n * _MIN for n in (1, 2, 5, 10, 20)),
    *(n * _H for n in (1, 2, 6, 12, 24)),
)
"""Distances between ticks that people count in; past a day, whole days."""

TICK_CELLS = 12
"""The least distance between two ticks: room for a label of ten characters."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a drawing: for outputs that have box drawing, and for those that have ASCII alone.

    A bar's `whole`, `left` and `right` are a full cell and its halves, so that a bar is drawn to half a cell.
    """

    whole: str
    left: str
    right: str
    thin_whole: str
    thin_left: str
    thin_right: str
    tick: str
    rule: str
    failed: str
    unanswered: str
    event: str
    paused: str
    folded: str
    dot: str
    lane: tuple[str, str, str, str]
    """The state lane: initializing, running, paused, anything else."""


DRAWN = Glyphs("━", "╸", "╺", "─", "╴", "╶", "┊", "─", "✗", "?", "◇", "◆", "⋯", "·", ("░", "█", "▒", "▚"))
ASCII = Glyphs("=", "=", "=", "-", "-", "-", ":", "-", "x", "?", "o", "*", "~", "-", (".", "#", "=", "%"))


@dataclass(frozen=True, slots=True)
class Axis:
    """From `start_ns` to `end_ns` (Unix nanoseconds) on `cells` terminal cells."""

    start_ns: int
    end_ns: int
    cells: int

    def halves(self, start_ns: int, end_ns: int) -> range:
        """The half cells that a stretch of time covers: at least one, however short it is."""
        length_ns = max(self.end_ns - self.start_ns, 1)
        count = self.cells * 2
        first = min(max((start_ns - self.start_ns) * count // length_ns, 0), count - 1)
        last = min(-((self.start_ns - end_ns) * count // length_ns), count)
        return range(first, max(last, first + 1))

    def cell(self, time_ns: int) -> int:
        """The cell of a moment."""
        return self.halves(time_ns, time_ns).start // 2

    def ticks(self) -> list[tuple[int, str]]:
        """The cells of the round moments with their labels, from 0 on, none closer than `TICK_CELLS` to the next."""
        length_ns = max(self.end_ns - self.start_ns, 1)
        least_ns = -(-length_ns * TICK_CELLS // self.cells)
        day_ns = 24 * _H
        step_ns = next((step for step in _ROUND_STEPS_NS if step >= least_ns), -(-least_ns // day_ns) * day_ns)
        unit_ns, unit = _unit(step_ns, length_ns)
        moments = range(0, length_ns + 1, step_ns)
        return [(self.cell(self.start_ns + at), f"{at / unit_ns:g} {unit}" if at else "0") for at in moments]


def _unit(step_ns: int, length_ns: int) -> tuple[int, str]:
    """The unit that labels are written in: the largest that the whole axis reaches and that a step is round in."""
    if step_ns >= 24 * _H:
        return 24 * _H, "d"
    if step_ns >= _H:
        return _H, "h"
    if step_ns >= _MIN:
        return _MIN, "min"
    if length_ns >= _S:
        return _S, "s"
    return (_MS, "ms") if length_ns >= _MS else (1_000, "µs")


def bar(halves: Iterable[int], whole: str, left: str, right: str) -> list[tuple[int, str]]:
    """The cells that a set of half cells needs, each with its character: both halves, the left one, the right one."""
    cells: dict[int, int] = {}
    for half in halves:
        cells[half // 2] = cells.get(half // 2, 0) | (1 << (half % 2))
    return [(cell, (left, right, whole)[sides - 1]) for cell, sides in cells.items()]


def lane(axis: Axis, stretches: Iterable[tuple[int, int, str]]) -> list[str | None]:
    """For every cell the label of the stretch `(start_ns, end_ns, label)` that fills most of it, or None.

    A cell is given to a stretch even if it covers a small part of it: a gap is shown only where there is nothing.
    """
    length_ns = max(axis.end_ns - axis.start_ns, 1)
    shares: list[dict[str, int]] = [{} for _ in range(axis.cells)]
    for start_ns, end_ns, label in stretches:
        halves = axis.halves(start_ns, end_ns)
        for cell in range(halves.start // 2, (halves.stop - 1) // 2 + 1):
            left_ns = axis.start_ns + cell * length_ns // axis.cells
            right_ns = axis.start_ns + (cell + 1) * length_ns // axis.cells
            covered_ns = max(min(end_ns, right_ns) - max(start_ns, left_ns), 0)
            shares[cell][label] = shares[cell].get(label, 0) + covered_ns
    return [max(share, key=lambda label: share[label]) if share else None for share in shares]
