"""Long traces on one screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.view.fold import fold
from otel_bridge.view.rows import Kind, Row, Stretch, trace_rows
from tests.view.traces import call, cart_session, lifetime, long_session, root

MS = 1_000_000


def told(rows: list[Row]) -> list[str]:
    """The rows as lines: label and hint."""
    return [f"{row.label} {row.hint}".rstrip() for row in rows]


def test_a_trace_that_fits_is_left_alone() -> None:
    """Nothing is folded up to the limit."""
    rows = trace_rows(cart_session())

    assert fold(rows, len(rows)) == rows


def test_calls_of_one_tool_in_a_row_become_one() -> None:
    """A run of equal calls is one row that keeps every bar, its total time and its count; a failure breaks it."""
    spans = [call(n + 1, "get_variables", n * 10, n * 10 + 4, error="no" if n == 3 else None) for n in range(6)]

    rows = fold(trace_rows([root(), *spans]), 5)

    assert told(rows) == ["get_variables x3", "get_variables", "get_variables x2"]
    assert [len(row.stretches) for row in rows] == [3, 1, 2]
    assert rows[0].duration_ns == 12 * MS


def test_what_accompanies_a_call_goes_first() -> None:
    """Events, requests below a call and pauses after a step give way before any call does."""
    rows = fold(trace_rows(cart_session()), 11)

    assert told(rows) == [
        "create_debug_session",
        "set_breakpoint basket.py:15",
        "set_breakpoint cart.py:15",
        "start_debugging",
        "paused breakpoint cart.py:15",
        "get_local_variables",
        "evaluate_expression DISCOUNTS[item]",
        "evaluate_expression x",
        "step_over",
        "continue_execution",
        "get_output",
    ]


def test_failures_and_long_calls_stay_and_the_rest_becomes_numbers() -> None:
    """Far over the limit, the landmarks keep their rows and what lies between them is counted."""
    slow = call(7777, "start_debugging", 2005, 2600)

    rows = fold(trace_rows([*long_session(400, frozenset({7, 200, 201})), slow]), 12)

    assert told(rows) == [
        "step_over",
        "evaluate_expression x2",
        "step_over",
        "evaluate_expression x2",
        "step_over",
        "evaluate_expression",
        "192 calls",
        "evaluate_expression",
        "start_debugging",
        "step_over",
        "198 calls",
    ]
    assert sum(row.failed for row in rows if row.kind is Kind.CALL) == 3


def test_folded_failures_are_counted() -> None:
    """Where there are more failures than rows, the folded row says how many it holds, and draws them as failures."""
    rows = fold(trace_rows(long_session(90, frozenset(range(90)))), 4)

    folded = [row for row in rows if row.kind is Kind.FOLDED]
    assert told(folded) == ["88 calls, 88 failed"]
    assert all(stretch.failed for stretch in folded[0].stretches)


def test_folded_pauses_are_counted() -> None:
    """Pauses that are folded with nothing else keep their own bars."""
    pauses = [Row(Kind.PAUSE, "paused", (Stretch(n, n + 1),), "breakpoint") for n in range(9)]

    rows = fold(pauses, 2)

    assert told(rows) == ["paused breakpoint", "8 pauses"]
    assert len(rows[1].stretches) == 8


@given(
    calls=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 99), st.booleans()), max_size=120),
    max_rows=st.integers(2, 40),
)
def test_folding_loses_no_call_and_keeps_the_limit(calls: list[tuple[str, int, bool]], max_rows: int) -> None:
    """Whatever the calls are, each is in exactly one row, every bar is kept, and there is at most one row too many."""
    spans = [
        call(n + 1, tool, n * 100, n * 100 + length, error="no" if failed else None)
        for n, (tool, length, failed) in enumerate(calls)
    ]

    rows = fold(trace_rows([root(), *spans, lifetime(len(calls) * 100)]), max_rows)

    assert sum(row.calls for row in rows) == len(calls)
    assert sum(len(row.stretches) for row in rows) == len(calls)
    assert len(rows) <= max_rows + 1
    assert [row.stretches[0].start_ns for row in rows] == sorted(row.stretches[0].start_ns for row in rows)
