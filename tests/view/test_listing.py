"""The lines that a replay prints."""

from __future__ import annotations

from dataclasses import replace

from otel_bridge.view.listing import aligned, tab_separated
from otel_bridge.view.totals import Tally, tally
from tests.view.traces import call, cart_session, lifetime, root, span

LOOSE = [span(77, "tools/call list_debug_sessions", 1, 2, parent_id=0)]
EVIL_NAME = "a\tb\nc\x1b[31m日[bold]"


def two_sessions() -> Tally:
    """A session with failures, and one with a hostile name that ended well."""
    evil = [root(EVIL_NAME, "x\ty"), call(1, "step_over", 0, 12, debug__session__name=EVIL_NAME), lifetime(20)]
    return tally([*cart_session(), *(replace(item, trace_id=5, start_ns=item.start_ns + 1) for item in evil), *LOOSE])


def test_tab_separated_is_stable_for_programs() -> None:
    """Under a pipe: seven columns, no head, seconds with three digits, names escaped, loose calls as `-`."""
    assert tab_separated(two_sessions()) == [
        "806a05897b86490d9928679ab71012c1\tcart total\tpython\t10\t2\t4.000\tnot closed",
        "00000000000000000000000000000005\ta\\tb\\nc\\x1b[31m日[bold]\tx\\ty\t1\t0\t0.020\tclosed",
        "-\t\t\t1\t0\t\t",
    ]


def test_aligned_is_a_table_for_people() -> None:
    """On a terminal: a head, columns that line up by cells, and a sentence about the calls without a session."""
    assert [line.plain for line in aligned(two_sessions())] == [
        "TRACE                             SESSION                  LANGUAGE  CALLS  FAILED  DURATION  END",
        "806a05897b86490d9928679ab71012c1  cart total               python       10       2    4.00 s  not closed",
        "00000000000000000000000000000005  a\\tb\\nc\\x1b[31m日[bold]  x\\ty          1       0     20 ms  closed",
        "1 call belongs to no session: it is a trace of its own",
    ]


def test_aligned_counts_failed_calls_without_a_session() -> None:
    """Several loose calls are one sentence, with their failures."""
    loose = [span(n, "tools/call x", n, n, parent_id=0, error="no" if n == 2 else None) for n in (1, 2, 3)]

    assert [line.plain for line in aligned(tally(loose))] == [
        "3 calls belong to no session: each is a trace of its own; 1 failed"
    ]


def test_nothing_gives_no_lines() -> None:
    """Without a span there is no head either."""
    assert aligned(Tally()) == []
    assert tab_separated(Tally()) == []


def test_aligned_in_ascii() -> None:
    """An output without Unicode gets escapes for what it cannot show."""
    assert all(line.plain.isascii() for line in aligned(two_sessions(), ascii_only=True))
