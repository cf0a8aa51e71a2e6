"""A trace drawn for people: a line a call, its bar on a time axis, and what the debugged program did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from otel_bridge.sessions.span import Span
from otel_bridge.view.axis import ASCII, DRAWN, Axis, Glyphs, bar, lane
from otel_bridge.view.escape import printable
from otel_bridge.view.fold import fold
from otel_bridge.view.rows import Kind, Row, states, trace_rows
from otel_bridge.view.summary import LANE_STATES, STATE_STYLES, header, summary
from otel_bridge.view.units import span_duration

MIN_WIDTH = 60
DEFAULT_MAX_ROWS = 80

_STYLES = {
    Kind.CALL: "cyan",
    Kind.INNER: "blue",
    Kind.PAUSE: STATE_STYLES["paused"],
    Kind.EVENT: "magenta",
    Kind.FOLDED: "cyan",
}
_TICK_STYLE = "dim"
_MARK_CELLS = 2
_INDENT_CELLS = 2
_MAX_DEPTH = 4
"""Rows below this depth are drawn at it: deeper trees must not push the bars out of the picture."""
_NAME_SHARE = 0.36
"""How much of the width names may take; the bars are what the picture is for."""


def render_trace(
    spans: Sequence[Span], *, width: int = 100, ascii_only: bool = False, max_rows: int | None = DEFAULT_MAX_ROWS
) -> Group:
    """A waterfall of `spans`, which are those of one trace, at most `width` terminal cells wide (60 at least).

    Traces of more than `max_rows` rows are folded (see `fold`), and a last line says so; None shows every row.
    Raises ValueError when there is no span.
    """
    if not spans:
        raise ValueError("there is no span to draw")
    every = trace_rows(spans)
    rows = every if max_rows is None else fold(every, max_rows)
    drawing = _Drawing(spans, rows, max(width, MIN_WIDTH), ascii_only)
    lines = [*header(spans, drawing.width, drawing.glyphs, ascii_only), Text()]
    lines += [drawing.scale(), *drawing.lane()]
    lines += [line for row in rows for line in drawing.row(row)]
    lines += [Text(), *summary(spans, drawing.width, drawing.glyphs, ascii_only)]
    if len(rows) < len(every):
        lines.append(Text(f"{len(every)} rows folded into {len(rows)}; --all shows each", "dim"))
    return Group(*lines)


class _Drawing:
    """The columns of one picture: mark, name, duration, bars."""

    def __init__(self, spans: Sequence[Span], rows: Sequence[Row], width: int, ascii_only: bool) -> None:
        self.width = width
        self.glyphs: Glyphs = ASCII if ascii_only else DRAWN
        self._ascii_only = ascii_only
        self._states = states(spans)
        names = [_indent(row) + cell_len(self._name(row)) for row in rows]
        self._name_cells = min(max(names, default=0), int(width * _NAME_SHARE))
        self._name_cells = max(self._name_cells, len("state"))
        self._time_cells = max((len(self._duration(row)) for row in rows), default=0)
        cells = width - _MARK_CELLS - self._name_cells - 1 - self._time_cells - 2
        self._axis = Axis(min(span.start_ns for span in spans), max(span.end_ns for span in spans), cells)
        self._ticks = self._axis.ticks()

    def scale(self) -> Text:
        """The labels of the ticks, above the bars."""
        line = ""
        for cell, label in self._ticks:
            label = label.replace("µ", "u") if self._ascii_only else label
            place = min(cell, self._axis.cells - len(label))
            line = line.ljust(place) + label if place > len(line) or not line else line
        return Text(" " * (self.width - self._axis.cells) + line, _TICK_STYLE)

    def lane(self) -> list[Text]:
        """The states of the debugged program along the axis, if the trace has any."""
        if not self._states:
            return []
        line = self._left(Text("state", "bold"), "")
        for state in lane(self._axis, self._states):
            known = state if state in LANE_STATES else "other"
            line.append(self.glyphs.lane[LANE_STATES.index(known)] if state else " ", STATE_STYLES[known])
        return [_trimmed(line)]

    def row(self, row: Row) -> list[Text]:
        """The line of a row, and one below it for the message of a failure."""
        style = "red" if row.failed and row.calls <= 1 else _STYLES[row.kind]
        name = Text(" " * _indent(row))
        room = self._name_cells - cell_len(name.plain)
        label = printable(row.label, max(room, 1), ascii_only=self._ascii_only)
        name.append(label, "red" if row.failed else "" if row.kind is Kind.CALL else style)
        room -= cell_len(label) + 1
        if row.hint and room > 1:
            name.append(" " + printable(row.hint, room, ascii_only=self._ascii_only), "dim")
        line = self._left(name, self._duration(row), self._mark(row))
        line.append_text(self._bars(row, style))
        lines = [_trimmed(line)]
        message = _first_line(row.note, self._ascii_only)
        if message:
            indent = " " * (_MARK_CELLS + _indent(row) + _INDENT_CELLS)
            shown = printable(message, self.width - len(indent), ascii_only=self._ascii_only)
            lines.append(Text(indent + shown, "red"))
        return lines

    def _left(self, name: Text, time: str, mark: Text | None = None) -> Text:
        line = Text(no_wrap=True, overflow="crop")
        line.append_text(mark or Text(" "))
        line.append(" ")
        line.append_text(name)
        line.append(" " * (_MARK_CELLS + self._name_cells + 1 - line.cell_len))
        line.append(time.rjust(self._time_cells), "dim")
        return line.append("  ")

    def _mark(self, row: Row) -> Text | None:
        if row.failed:
            return Text(self.glyphs.failed, "bold red")
        if row.unanswered:
            return Text(self.glyphs.unanswered, "bold yellow")
        if row.kind is Kind.PAUSE:
            return Text(self.glyphs.paused, STATE_STYLES["paused"])
        return Text(self.glyphs.folded, "dim") if row.kind is Kind.FOLDED else None

    def _bars(self, row: Row, style: str) -> Text:
        cells: list[tuple[str, str]] = [(" ", "")] * self._axis.cells
        for cell, _ in self._ticks:
            cells[cell] = (self.glyphs.tick, _TICK_STYLE)
        if row.kind is Kind.EVENT:
            for stretch in row.stretches:
                cells[self._axis.cell(stretch.start_ns)] = (self.glyphs.event, style)
        else:
            thin = row.kind in (Kind.INNER, Kind.PAUSE)
            for failed in (False, True):
                covered = [
                    half
                    for stretch in row.stretches
                    if stretch.failed is failed
                    for half in self._axis.halves(stretch.start_ns, stretch.end_ns)
                ]
                for cell, character in bar(covered, *self._bar_glyphs(thin)):
                    cells[cell] = (character, "red" if failed else style)
        line = Text()
        for cell_style, group in groupby(cells, key=lambda cell: cell[1]):
            line.append("".join(character for character, _ in group), cell_style)
        return line

    def _bar_glyphs(self, thin: bool) -> tuple[str, str, str]:
        drawn = self.glyphs
        return (drawn.thin_whole, drawn.thin_left, drawn.thin_right) if thin else (drawn.whole, drawn.left, drawn.right)

    def _name(self, row: Row) -> str:
        return printable(f"{row.label} {row.hint}".rstrip(), self.width, ascii_only=self._ascii_only)

    def _duration(self, row: Row) -> str:
        if row.kind is Kind.EVENT:
            return ""
        return span_duration(row.duration_ns, ascii_only=self._ascii_only)


def _indent(row: Row) -> int:
    return min(row.depth, _MAX_DEPTH) * _INDENT_CELLS


def _first_line(message: str, ascii_only: bool) -> str:
    """The first line of a message, marked where more follows; the backend has the whole of it."""
    first, _, more = message.strip().partition("\n")
    return f"{first} {'...' if ascii_only else '…'}" if more else first


def _trimmed(line: Text) -> Text:
    line.rstrip()
    return line
