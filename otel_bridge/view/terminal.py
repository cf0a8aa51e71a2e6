"""Printing: what the other end can show decides colour, width and characters."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from otel_bridge.sessions.span import Span
from otel_bridge.view.listing import aligned, tab_separated
from otel_bridge.view.totals import Tally
from otel_bridge.view.waterfall import DEFAULT_MAX_ROWS, MIN_WIDTH, render_trace

PIPE_WIDTH = 100


def console_for(stream: TextIO) -> Console:
    """A rich console that shows text as it is: no markup, no emoji codes, no highlighting.

    Colour only where a terminal is and `NO_COLOR` is not set; the width is the terminal's, or `COLUMNS`, or 100 under
    a pipe, so that what is piped does not depend on the window.
    """
    width = None if stream.isatty() else _columns() or PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, force_jupyter=False)


def is_ascii_only(stream: TextIO) -> bool:
    """Whether the stream's encoding cannot carry every character: then the drawing and the log's text do with ASCII."""
    return stream.encoding is not None and not codecs.lookup(stream.encoding).name.startswith("utf")


def print_trace(spans: Sequence[Span], stream: TextIO, *, max_rows: int | None = DEFAULT_MAX_ROWS) -> None:
    """Draw the spans of one trace on `stream` (see `render_trace`). Raises ValueError when there is no span."""
    console = console_for(stream)
    console.width = max(console.width, MIN_WIDTH)
    console.print(render_trace(spans, width=console.width, ascii_only=is_ascii_only(stream), max_rows=max_rows))


def print_listing(tally: Tally, stream: TextIO) -> None:
    """Print a line a session: aligned columns on a terminal, tab-separated and stable under a pipe."""
    if stream.isatty():
        console = console_for(stream)
        for line in aligned(tally, ascii_only=is_ascii_only(stream)):
            console.print(line, soft_wrap=True)
        return
    stream.writelines(f"{line}\n" for line in tab_separated(tally, ascii_only=is_ascii_only(stream)))


def _columns() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None
