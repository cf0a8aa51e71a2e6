"""What people see in a terminal. Everything from a log is escaped before it is shown.

    escape.printable(text, max_width=None)              log text made fit for a terminal
    terminal.print_trace(spans, stream, *, max_rows=80) one trace as a waterfall; max_rows=None shows every row
    terminal.print_listing(tally, stream)               a line a session: a table, or tab-separated under a pipe
    terminal.console_for(stream)                        a rich console without markup
    totals.Tally().add(span), .sessions(), .loose()     counts spans as they come, in memory that grows with sessions
    totals.tally(spans)                                 the same for spans that are there already
    units.duration(ns), units.moment(ns)                times as people read them
    waterfall.render_trace(spans, width=100)            the waterfall as a rich renderable, pure

Nothing is imported here: `escape` is needed everywhere, rich (about 60 ms) only where something is drawn.
"""
