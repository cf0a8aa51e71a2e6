"""A long trace on one screen: rows that tell little are folded together, and nothing leaves the time axis.

Folded rows keep their bars: they are drawn side by side on the line of the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from otel_bridge.view.rows import Kind, Row

_SMALL_PAUSES = ("", "step")


def fold(rows: Sequence[Row], max_rows: int) -> list[Row]:
    """The rows that tell most: failures, pauses and long calls stand alone, the rest are folded together.

    First what merely accompanies a call goes (events, requests below it, pauses after a step), then calls of one tool
    in a row become one, and if that is not enough the shortest calls become `n calls` between those that stay. The
    result has at most `max_rows` rows and one, where `max_rows` is 2 or more.
    """
    if len(rows) <= max_rows:
        return list(rows)
    mergeable = [row for row in rows if _is_call(row) or (row.kind is Kind.PAUSE and row.hint not in _SMALL_PAUSES)]
    merged = _merge_runs(mergeable)
    if len(merged) <= max_rows:
        return merged
    kept = _landmarks(merged, max(max_rows // 2, 1))
    result: list[Row] = []
    for stays, group in groupby(range(len(merged)), key=lambda index: index in kept):
        run = [merged[index] for index in group]
        result += run if stays or len(run) == 1 else [_folded(run)]
    return result


def _landmarks(rows: Sequence[Row], room: int) -> set[int]:
    """The indexes of the `room` rows that tell most. Between two of them may be one of folded rows, hence half."""
    pauses = sorted((i for i, row in enumerate(rows) if row.kind is Kind.PAUSE), key=lambda i: -rows[i].duration_ns)
    calls = sorted((i for i, row in enumerate(rows) if row.kind is not Kind.PAUSE), key=lambda i: _rank(rows[i]))
    shown = pauses[: max(room // 3, room - len(calls))]
    return {*shown, *calls[: room - len(shown)]}


def _rank(row: Row) -> tuple[bool, int]:
    """Failures and calls without an answer first, then the longest."""
    return not (row.failed or row.unanswered), -row.duration_ns


def _is_call(row: Row) -> bool:
    return row.kind is Kind.CALL and row.depth == 0


def _merge_runs(rows: Sequence[Row]) -> list[Row]:
    merged: list[Row] = []
    for (tool, alike), group in groupby(rows, key=lambda row: (row.label, _is_call(row) and not row.failed)):
        run = list(group)
        merged += [_together(tool, run)] if alike and len(run) > 1 else run
    return merged


def _folded(run: Sequence[Row]) -> Row:
    pauses = sum(row.kind is Kind.PAUSE for row in run)
    calls = sum(row.calls for row in run)
    counts = {"calls": calls, "pauses": pauses, "failed": sum(row.failed for row in run)}
    label = ", ".join(
        f"{count} {what if count != 1 else what.removesuffix('s')}" for what, count in counts.items() if count
    )
    return _together(label, run, Kind.FOLDED)


def _together(label: str, run: Sequence[Row], kind: Kind = Kind.CALL) -> Row:
    """One row for many: the bars of its calls, or of its pauses where there is nothing else."""
    told = [row for row in run if row.kind is not Kind.PAUSE] or run
    calls = sum(row.calls for row in run)
    return Row(
        kind,
        label,
        tuple(stretch for row in told for stretch in row.stretches),
        hint=f"x{calls}" if kind is Kind.CALL else "",
        calls=calls,
        failed=any(row.failed for row in run),
        unanswered=any(row.unanswered for row in run),
    )
