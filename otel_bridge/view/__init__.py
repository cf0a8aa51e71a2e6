"""What people see in a terminal. Everything from a log is escaped before it is shown.

    print_trace(spans, stream, *, max_rows=80)    one trace as a waterfall; max_rows=None shows every row (`--all`)
    print_listing(tally, stream)                  a line a session: a table on a terminal, tab-separated under a pipe
    Tally().add(span), .sessions(), .loose()      counts spans as they come, in memory that grows with sessions alone
    tally(spans)                                  the same for spans that are there already
    printable(text, max_width=None)               log text made fit for a terminal
    duration(ns), moment(ns)                      times as people read them
    console_for(stream), is_ascii_only(stream)    a rich console without markup; what the stream can carry
    render_trace(spans, width=100, ascii_only=False, max_rows=80)    the waterfall as a rich renderable, pure

Importing this module imports rich's console (about 60 ms): commands that show nothing should not.
"""

from __future__ import annotations

from otel_bridge.view.escape import printable
from otel_bridge.view.terminal import console_for, is_ascii_only, print_listing, print_trace
from otel_bridge.view.totals import LooseTotals, SessionTotals, Tally, tally
from otel_bridge.view.units import duration, moment
from otel_bridge.view.waterfall import render_trace

__all__ = [
    "LooseTotals",
    "SessionTotals",
    "Tally",
    "console_for",
    "duration",
    "is_ascii_only",
    "moment",
    "print_listing",
    "print_trace",
    "printable",
    "render_trace",
    "tally",
]
