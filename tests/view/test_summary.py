"""What stands above and below the bars."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from otel_bridge.sessions.span import Span
from otel_bridge.view.axis import DRAWN
from otel_bridge.view.summary import covered_ns, flow, header, summary
from tests.view.traces import call, cart_session, lifetime, root, state


def above(spans: list[Span], width: int = 100) -> list[str]:
    """The header as text."""
    return [line.plain for line in header(spans, width, DRAWN, ascii_only=False)]


def below(spans: list[Span], width: int = 100) -> list[str]:
    """The summary as text."""
    return [line.plain for line in summary(spans, width, DRAWN, ascii_only=False)]


def test_says_what_is_out_of_the_ordinary_and_no_more() -> None:
    """Failures, calls without an answer and a cut beginning are named only where there are some."""
    plain = [root(), call(1, "step_over", 0, 5), lifetime(20)]

    assert above(plain)[1] == "2026-11-30 20:53:03.998 UTC · 20 ms · 1 call · closed"
    partial = [root(otel_bridge__partial=True), *plain[1:]]
    assert above(partial)[1].endswith("closed · the log begins in the middle of it")


def test_a_session_without_name_or_language_is_still_named() -> None:
    """What the log does not tell is said to be unknown."""
    assert above([root("", "")])[0].startswith("unnamed · unknown language · trace ")


def test_states_the_log_alone_knows_are_summed_as_other() -> None:
    """A state that has no colour of its own counts as other, last."""
    spans = [root(), state(1, "error", 0, 10), state(2, "paused", 10, 30), state(3, "odd", 30, 35)]

    assert below(spans) == ["states    ▒ paused 20 ms  ▚ other 15 ms"]


def test_one_call_has_no_slowest() -> None:
    """There is nothing to rank in a session of one call."""
    assert below([root(), call(1, "step_over", 0, 5), lifetime(20)]) == []


def test_many_kinds_of_failure_are_cut_short_with_their_number() -> None:
    """The commonest failures are named with their counts; the rest is a number."""
    failing = [call(n, f"tool_{n // 2}", n, n + 1, error="no") for n in range(2, 17)]

    line = "".join(below([root(), *failing, lifetime(20)], 1000)[-1:])

    assert line == (
        "failed    tool_1 tool_error x2 · tool_2 tool_error x2 · tool_3 tool_error x2 · tool_4 tool_error x2"
        " · tool_5 tool_error x2 · tool_6 tool_error x2 · 3 more"
    )


@pytest.mark.parametrize(
    ("stretches", "covered"),
    [([], 0), ([(5, 9)], 4), ([(5, 9), (20, 21)], 5), ([(5, 9), (7, 12)], 7), ([(5, 30), (7, 12), (29, 31)], 26)],
)
def test_time_that_calls_share_counts_once(stretches: list[tuple[int, int]], covered: int) -> None:
    """Concurrent calls do not make more time than there is."""
    assert covered_ns(stretches) == covered


@given(st.lists(st.text("ab", min_size=1, max_size=12), max_size=12), st.integers(12, 60))
def test_flow_keeps_every_part_whole_and_within_the_width(words: list[str], width: int) -> None:
    """Lines are broken between parts only, and no line is wider than asked."""
    lines = [line.plain for line in flow([Text(word) for word in words], " · ", width)]

    assert [word for line in lines for word in line.split(" · ") if word] == words
    assert all(len(line) <= width for line in lines)


def test_the_summary_of_a_session() -> None:
    """Time in each state, in calls, the slowest of them, the failures."""
    assert below(cart_session()) == [
        "states    ░ initializing 1.30 s  █ running 690 ms  ▒ paused 1.41 s",
        "in calls  2.61 s of 4.00 s (65 %)",
        "slowest   start_debugging 1.66 s · get_local_variables 326 ms · create_debug_session 310 ms",
        "failed    set_breakpoint -32602 · evaluate_expression tool_error",
    ]
