"""What of a trace gets a row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from otel_bridge.sessions.span import Span
from otel_bridge.view.rows import Kind, Row, place, trace_rows
from tests.view.traces import call, cart_session, event, lifetime, root, span, state


def told(rows: list[Row]) -> list[str]:
    """The rows as lines: indentation, label and hint."""
    return ["  " * row.depth + f"{row.label} {row.hint}".rstrip() for row in rows]


def test_a_session_reads_as_a_story() -> None:
    """Calls by time, requests and events below their call, pauses between; what the lane or header says has no row."""
    assert told(trace_rows(cart_session())) == [
        "create_debug_session",
        "set_breakpoint basket.py:15",
        "set_breakpoint cart.py:15",
        "start_debugging",
        "  dap launch",
        "  dap setBreakpoints",
        "  breakpoint verified cart.py:15, cart.py:9",
        "paused breakpoint cart.py:15",
        "get_local_variables",
        "evaluate_expression DISCOUNTS[item]",
        "evaluate_expression x",
        "step_over",
        "paused step",
        "continue_execution",
        "  stopped",
        "get_output",
    ]


def test_the_order_of_the_spans_does_not_matter() -> None:
    """Rows are sorted by time: a batch that arrives in another order gives the same picture."""
    assert trace_rows(list(reversed(cart_session()))) == trace_rows(cart_session())


def test_requests_and_events_of_a_call_are_mixed_by_time() -> None:
    """What happened during a call is told in its order, whether it has a length or not."""
    happened = [event("debug.breakpoint.verified", 3), event("debug.breakpoint.changed", 7)]
    spans = [call(1, "x", 0, 9, events=happened), *(span(n, f"dap {n}", n, n + 1, parent_id=1) for n in (2, 5))]

    assert told(trace_rows(spans)) == ["x", "  dap 2", "  breakpoint verified", "  dap 5", "  breakpoint changed"]


def test_a_failure_has_its_message_and_an_unanswered_call_its_mark() -> None:
    """Failure and missing answer are told apart."""
    rows = {row.label: row for row in trace_rows(cart_session()) if row.failed or row.unanswered}

    assert rows["evaluate_expression"].note == "Unable to find thread."
    assert (rows["get_output"].failed, rows["get_output"].unanswered, rows["get_output"].note) == (False, True, "")


def test_a_failure_without_a_message_shows_its_type() -> None:
    """Where the capture level kept the message back, the type of the error stands for it."""
    (row,) = trace_rows([root(), call(1, "step_over", 0, 1, error="")])

    assert row.note == "tool_error"


@pytest.mark.parametrize(
    ("spans", "rows"),
    [
        ([span(1, "tools/call x", 0, 1, parent_id=0)], ["x"]),
        ([call(1, "step_over", 0, 1)], ["step_over"]),
        ([span(2, "inner", 1, 2, parent_id=1), call(1, "step_over", 0, 5)], ["step_over", "  inner"]),
        ([span(3, "c", 2, 3, parent_id=2), span(2, "b", 1, 4, parent_id=1), call(1, "a", 0, 5)], ["a", "  b", "    c"]),
        ([root(), lifetime(5)], []),
        ([root(), span(1, "something else", 0, 1)], ["something else"]),
    ],
)
def test_every_tree_can_be_drawn(spans: list[Span], rows: list[str]) -> None:
    """Lone calls, lost roots, deep trees and unknown spans all have their rows."""
    assert told(trace_rows(spans)) == rows


def test_events_outside_calls_are_rows_at_the_top() -> None:
    """Events of the lifetime, of a state or of a span made for events stand by themselves."""
    late = span(1, "debug_session event", 3, 3, events=[event("debug.breakpoint.changed", 3, "/a/b.py", 7)])
    ended = lifetime(5)
    rows = trace_rows([root(), late, state(2, "running", 0, 2.5, reason="x"), ended])

    assert told(rows) == ["breakpoint changed b.py:7"]
    assert (rows[0].kind, rows[0].depth) == (Kind.EVENT, 0)


def test_an_event_of_a_long_state_stands_at_its_own_time() -> None:
    """The end of the program, told while it ran, is not drawn where the running began."""
    running = replace(state(2, "running", 1, 90), events=(event("debug.state.stopped", 80),))

    assert told(trace_rows([root(), running, call(3, "x", 10, 20), call(4, "y", 85, 90)])) == ["x", "stopped", "y"]


def test_many_events_of_a_name_are_one_row() -> None:
    """A run of equal events is one row with its places, at most three of them, or with its count."""
    verified = [event("debug.breakpoint.verified", n, "/a.py", line) for n, line in enumerate([1, 2, 1, 3, 4, 5])]
    output = [event("debug.output", 10 + n) for n in range(4)]

    assert told(trace_rows([root(), call(1, "x", 0, 20, events=[*output, *verified])])) == [
        "x",
        "  breakpoint verified a.py:1, a.py:2, a.py:3, 2 more x6",
        "  output x4",
    ]


def test_an_event_that_only_repeats_its_call_has_no_row() -> None:
    """Result entries say what the call's row says; on another span, or of a kind nobody knows, an event is shown."""
    repeated = [event("debug.evaluate", 1), event("tool.error", 2), event("debug.breakpoint.set", 3)]

    assert told(trace_rows([root(), call(1, "x", 0, 5, events=[*repeated, event("debug.new", 4)])])) == ["x", "  new"]
    other = span(1, "debug_session event", 0, 5, events=repeated)
    assert told(trace_rows([root(), other])) == ["evaluate", "tool error", "breakpoint set"]


@pytest.mark.parametrize(
    ("path", "line", "shown"),
    [
        ("/workspace/shop/cart.py", 15, "cart.py:15"),
        ("C:\\shop\\cart.py", 15, "cart.py:15"),
        ("cart.py", None, "cart.py"),
        ("/", 1, "/:1"),
        ("", None, ""),
        (None, 3, ""),
    ],
)
def test_place_is_the_name_of_the_file_and_the_line(path: str | None, line: int | None, shown: str) -> None:
    """Folders are left out, whichever system the server ran on."""
    attributes = {"code.file.path": path, "code.line.number": line}

    assert place({key: value for key, value in attributes.items() if value is not None}) == shown


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '{"expression": 5}', '"text"', '{"other": "x"}'])
def test_arguments_that_say_nothing_leave_the_place(arguments: str) -> None:
    """Arguments that are cut, of another form or without an expression do no harm."""
    described = call(1, "x", 0, 1, gen_ai__tool__call__arguments=arguments, code__file__path="/a.py")

    assert told(trace_rows([root(), described])) == ["x a.py"]
