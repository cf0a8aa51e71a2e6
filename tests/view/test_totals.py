"""What a session comes to."""

from __future__ import annotations

import random

from otel_bridge.sessions.span import SpanKind, StatusCode
from otel_bridge.view.totals import LooseTotals, SessionTotals, tally
from tests.view.traces import (
    START_NS,
    TRACE_ID,
    at,
    attributes,
    call,
    cart_session,
    lifetime,
    root,
    span,
)


def test_counts_the_spans_of_a_session_in_any_order() -> None:
    """Name, times, calls, failures and end come from the spans, whatever order they arrive in."""
    expected = SessionTotals(
        trace_id=TRACE_ID,
        name="cart total",
        language="python",
        start_ns=START_NS,
        end_ns=at(4000),
        calls=10,
        failures=2,
        unanswered=1,
        end="not closed",
        partial=False,
    )
    spans = cart_session()
    random.Random(4).shuffle(spans)

    assert tally(spans).sessions() == [expected]
    assert expected.duration_ns == 4_000_000_000


def test_a_session_without_its_last_span_is_unfinished() -> None:
    """Until the lifetime span is there, or while it is a snapshot, nothing says how the session ends."""
    running = [root(), call(1, "step_over", 0, 5)]

    assert [session.end for session in tally(running).sessions()] == ["unfinished"]
    snapshot = lifetime(10, "not_closed", otel_bridge__snapshot=True)
    assert [session.end for session in tally([*running, snapshot]).sessions()] == ["unfinished"]


def test_the_last_lifetime_says_how_it_ended() -> None:
    """A session that came back has two lifetimes; the later one counts, also when it arrives first."""
    later = span(2, "debug_session lifetime", 20, 30, with_attributes=attributes(debug__session__end_reason="closed"))

    assert [session.end for session in tally([root(), later, lifetime(10, "not_closed")]).sessions()] == ["closed"]


def test_a_root_made_in_the_middle_is_named() -> None:
    """A session whose beginning the log does not have is marked as partial."""
    assert [session.partial for session in tally([root(otel_bridge__partial=True)]).sessions()] == [True]


def test_calls_without_a_session_are_counted_apart() -> None:
    """A tool call that is the root of its trace is no session."""
    loose = [
        span(number, "tools/call list_debug_sessions", number, number, parent_id=0, error=error)
        for number, error in ((1, None), (2, "no"), (3, None))
    ]

    counted = tally([*loose, *cart_session()])

    assert counted.loose() == LooseTotals(calls=3, failures=1)
    assert [session.calls for session in counted.sessions()] == [10]


def test_sessions_are_in_the_order_of_their_starts() -> None:
    """The listing is by time, not by the order of arrival."""
    spans = [root(str(start)) for start in (3, 1, 2)]
    moved = [
        type(spans[0])(
            trace_id=number,
            span_id=1,
            parent_id=0,
            name="debug_session python",
            kind=SpanKind.INTERNAL,
            start_ns=int(str(item.attributes["debug.session.name"])),
            end_ns=9,
            attributes=item.attributes,
            status=StatusCode.UNSET,
        )
        for number, item in enumerate(spans)
    ]

    assert [session.name for session in tally(moved).sessions()] == ["1", "2", "3"]
