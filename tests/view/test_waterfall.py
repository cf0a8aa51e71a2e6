"""The picture of a trace, as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from otel_bridge.sessions.span import Span
from otel_bridge.view.waterfall import render_trace
from tests.view.traces import attributes, call, cart_session, event, lifetime, long_session, root, span, state

PICTURES = Path(__file__).parent / "pictures"


def drawn(spans: Sequence[Span], width: int = 100, *, ascii_only: bool = False, max_rows: int | None = 80) -> str:
    """The picture as a pipe would get it."""
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    console.print(render_trace(spans, width=width, ascii_only=ascii_only, max_rows=max_rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("picture", "width", "ascii_only"),
    [("cart_80.txt", 80, False), ("cart_120.txt", 120, False), ("cart_ascii_80.txt", 80, True)],
)
def test_a_session_looks_like_its_picture(picture: str, width: int, ascii_only: bool) -> None:
    """A session with failures, pauses, events and DAP requests is drawn as it was approved by eye."""
    assert drawn(cart_session(), width, ascii_only=ascii_only) == (PICTURES / picture).read_text()


def test_a_long_session_looks_like_its_picture() -> None:
    """Four hundred calls fit on one screen; a last line says that rows were folded and how to see them."""
    shown = drawn(long_session(400, frozenset({7, 200, 201})), max_rows=12)

    assert shown == (PICTURES / "long_100.txt").read_text()


def test_every_row_is_there_when_asked_for() -> None:
    """Without a limit nothing is folded, and no line says so."""
    shown = drawn(long_session(400), max_rows=None)

    assert shown.count("  evaluate_expression ") >= 266
    assert "--all" not in shown


def test_a_call_without_a_session_is_a_picture_too() -> None:
    """A trace of one span has no session to name."""
    lines = drawn([span(1, "tools/call list_debug_sessions", 0, 3, parent_id=0)]).splitlines()

    assert lines[0] == "no session · trace 806a05897b86490d9928679ab71012c1"
    assert lines[4].startswith("  list_debug_sessions 3 ms")


def test_a_session_with_a_root_alone() -> None:
    """A session of which only the root has arrived is named, with nothing to draw."""
    lines = drawn([root()]).splitlines()

    assert lines[0].startswith("cart total · python")
    assert lines[1] == "2026-11-30 20:53:03.998 UTC · 0.001 µs · 0 calls · unfinished"


def test_a_deep_tree_does_not_push_its_bars_out() -> None:
    """Rows very deep in a tree are indented no further, so that their names and bars are seen."""
    spans = [call(1, "x", 0, 50), *(span(n, f"step {n}", 0, 50, parent_id=n - 1) for n in range(2, 30))]

    rows = drawn([root(), *spans], 60).splitlines()[5:33]

    assert all(row.endswith("──") and f"step {n}" in row for n, row in enumerate(rows, 2))


@pytest.mark.parametrize("message", ["\r", "\n \n", " \t"])
def test_a_message_of_blanks_has_no_line(message: str) -> None:
    """A failure whose message shows nothing takes no line for it."""
    blank = drawn([root(), call(1, "x", 0, 5, error=message)]).splitlines()

    assert [line.split() for line in blank[4:]] == [["✗", "x", "5", "ms", "━" * 86], [], ["failed", "x", "tool_error"]]


def test_no_span_is_an_error() -> None:
    """An empty trace cannot be drawn."""
    with pytest.raises(ValueError, match="no span"):
        render_trace([])


def test_log_text_is_neither_markup_nor_control() -> None:
    """Markup in a log is shown as it is, and control characters as escapes, wherever they stand."""
    evil = "[red]x[/red]\x1b[2J\u202e\n:smile:"
    spans = [
        root(evil, evil),
        call(1, evil, 0, 5, error=evil, arguments={"expression": evil}),
        span(2, evil, 1, 2, parent_id=1, error=evil),
        state(3, evil, 0, 9, debug__state__reason=evil),
        span(4, "debug_session event", 6, 6, events=[event(f"debug.{evil}", 6, evil, 1)]),
        span(5, "debug_session lifetime", 0, 9, with_attributes=attributes(debug__session__end_reason=evil)),
    ]

    shown = drawn(spans, 200)

    assert not {character for character in shown if character != "\n" and not character.isprintable()}
    assert "[red]x[/red]\\x1b[2J\\u202e\\n:smile:" in shown


WORDS = st.text(st.characters(exclude_categories=()), max_size=30)
TIMES = st.integers(0, 10**12)


@st.composite
def traces(draw: st.DrawFn) -> list[Span]:
    """A trace of any names, times and shape."""
    spans = [root(draw(WORDS), draw(WORDS))]
    for number in range(1, draw(st.integers(1, 12))):
        start, length = draw(TIMES), draw(TIMES)
        kind = draw(st.sampled_from(("call", "state", "inner", "lifetime")))
        error = draw(st.none() | WORDS)
        if kind == "call":
            happened = [event(f"debug.{draw(WORDS)}", start + 1, draw(WORDS), 5)]
            arguments: dict[str, object] = {"expression": draw(WORDS)}
            spans.append(
                call(number, draw(WORDS), start, start + length, events=happened, error=error, arguments=arguments)
            )
        elif kind == "state":
            spans.append(state(number, draw(st.sampled_from(("paused", "running", "x\n"))), start, start + length))
        elif kind == "lifetime":
            spans.append(lifetime(start))
        else:
            parent_id = draw(st.integers(1, number))
            above = parent_id if parent_id < number else 0xA1
            spans.append(span(number, draw(WORDS), start, start + length, parent_id=above, error=error))
    return spans


@settings(max_examples=60, deadline=None)
@given(
    spans=traces(),
    width=st.integers(60, 200),
    ascii_only=st.booleans(),
    max_rows=st.none() | st.integers(1, 10),
)
def test_any_trace_fits_the_width(spans: list[Span], width: int, ascii_only: bool, max_rows: int | None) -> None:
    """Whatever a trace holds, no line is wider than asked or ends in blanks, and ASCII output is ASCII."""
    shown = drawn(spans, width, ascii_only=ascii_only, max_rows=max_rows)

    for line in shown.split("\n"):
        assert cell_len(line) <= width
        assert line == line.rstrip()
    assert shown.isascii() or not ascii_only
    shown.encode()


@pytest.mark.parametrize("width", [20, 60])
def test_narrower_than_sixty_is_drawn_at_sixty(width: int) -> None:
    """Below 60 columns there is no room for a picture: it is drawn 60 wide."""
    console = Console(file=io.StringIO(), width=60)
    console.print(render_trace(cart_session(), width=width))
    assert isinstance(console.file, io.StringIO)

    assert console.file.getvalue() == drawn(cart_session(), 60)
