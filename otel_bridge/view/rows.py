"""A trace as the rows of a waterfall: what gets a row, in which order, and what it says.

One row a call, with what happened during it below; one a pause of the debugged program, which is what people look for;
one a kind of event in a call. The other states have no rows of their own: the lane along the axis shows them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from pathlib import PurePosixPath, PureWindowsPath

from otel_bridge.sessions.attributes import (
    ARGUMENTS,
    ERROR_TYPE,
    EVENT_NAME,
    FILE,
    LIFETIME_NAME,
    LINE,
    ROOT_NAME,
    STATE_REASON,
    TOOL,
)
from otel_bridge.sessions.span import Attributes, Span, SpanEvent
from otel_bridge.view.totals import CALL_PREFIX, is_call, is_failure, is_unanswered

STATE_PREFIX = "debuggee "
_IN_THE_LANE = ("initializing", "running")
_SAID_BY_THE_HEADER = ("session.created", "session.closed")
_SAID_BY_THE_CALL = ("tool.", "debug.breakpoint.set", "debug.evaluate", "debug.variables", "debug.source_context")
"""Starts of names of events that only repeat what the row of the call that they belong to says."""
_PLACES = 3


class Kind(Enum):
    """What a row is about, which decides how it is drawn."""

    CALL = auto()
    INNER = auto()
    PAUSE = auto()
    EVENT = auto()
    FOLDED = auto()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the time axis that a row covers, in Unix nanoseconds."""

    start_ns: int
    end_ns: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `label`, `hint` and `note` are raw text of the log; `note` is the message of a failure."""

    kind: Kind
    label: str
    stretches: tuple[Stretch, ...]
    hint: str = ""
    note: str = ""
    depth: int = 0
    failed: bool = False
    unanswered: bool = False
    calls: int = 0
    """How many calls the row stands for: 1 for a call's own, more for folded ones."""

    @property
    def duration_ns(self) -> int:
        """The time that its stretches take together."""
        return sum(stretch.end_ns - stretch.start_ns for stretch in self.stretches)


def trace_rows(spans: Sequence[Span]) -> list[Row]:
    """All rows of one trace in the order of their starts, children below their parents."""
    ids = {span.span_id for span in spans}
    roots = {span.span_id for span in spans if span.parent_id == 0 and span.name.startswith(ROOT_NAME)}
    below: dict[int | None, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, span.end_ns, span.span_id)):
        if span.span_id not in roots:
            parent = span.parent_id if span.parent_id in ids and span.parent_id not in roots else None
            below.setdefault(parent, []).append(span)
    states = {span.name.removeprefix(STATE_PREFIX) for span in spans if span.name.startswith(STATE_PREFIX)}
    return _in_order(timed for span in below.get(None, ()) for timed in _timeline(span, below, states, 0))


def states(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    """The states of the debugged program as `(start_ns, end_ns, state)`, by time."""
    return sorted(
        (span.start_ns, span.end_ns, span.name.removeprefix(STATE_PREFIX))
        for span in spans
        if span.name.startswith(STATE_PREFIX)
    )


_Timed = tuple[int, list[Row]]
"""Rows that belong together, and the time in Unix ns that they are sorted by."""


def _timeline(span: Span, below: dict[int | None, list[Span]], states: set[str], depth: int) -> list[_Timed]:
    """The rows of a span and of all below it; what is below one without a row stands for itself, at its own time."""
    own = _own_row(span, depth)
    inner = depth + 1 if own else depth
    parts = [part for child in below.get(span.span_id, ()) for part in _timeline(child, below, states, inner)]
    parts += [(row.stretches[0].start_ns, [row]) for row in _event_rows(span, states, inner)]
    return [(span.start_ns, [own, *_in_order(parts)])] if own else parts


def _in_order(parts: Iterable[_Timed]) -> list[Row]:
    return [row for _, rows in sorted(parts, key=lambda part: part[0]) for row in rows]


def _own_row(span: Span, depth: int) -> Row | None:
    """The row of the span itself; None for those that the header or the lane shows."""
    stretch = (Stretch(span.start_ns, span.end_ns, is_failure(span)),)
    if span.name.startswith(STATE_PREFIX):
        state = span.name.removeprefix(STATE_PREFIX)
        reason, where = str(span.attributes.get(STATE_REASON, "")), place(span.attributes)
        if state in _IN_THE_LANE and not where:
            return None
        return Row(Kind.PAUSE, state, stretch, " ".join(filter(None, (reason, where))), depth=depth)
    if span.name == LIFETIME_NAME or span.name.startswith(EVENT_NAME):
        return None
    call = is_call(span)
    return Row(
        Kind.CALL if call or depth == 0 else Kind.INNER,
        str(span.attributes.get(TOOL, span.name.removeprefix(CALL_PREFIX))) if call else span.name,
        stretch,
        _argument(span.attributes) if call else "",
        span.status_message or str(span.attributes.get(ERROR_TYPE, "")) if is_failure(span) else "",
        depth=depth,
        failed=is_failure(span),
        unanswered=is_unanswered(span),
        calls=int(call),
    )


def _event_rows(span: Span, states: set[str], depth: int) -> list[Row]:
    """One row for each unbroken run of events of one name, with the places that they name."""
    told = [event for event in span.events if not _is_said_elsewhere(event, is_call(span), states)]
    told.sort(key=lambda event: event.time_ns)
    rows = []
    for name, group in groupby(told, key=lambda event: event.name):
        run = list(group)
        where = list(dict.fromkeys(filter(None, (place(event.attributes) for event in run))))
        shown = ", ".join(where[:_PLACES]) + (f", {len(where) - _PLACES} more" if len(where) > _PLACES else "")
        times = f"x{len(run)}" if len(run) > max(len(where), 1) else ""
        label = name.removeprefix("debug.").removeprefix("state.").replace(".", " ")
        stretches = tuple(Stretch(event.time_ns, event.time_ns) for event in run)
        rows.append(Row(Kind.EVENT, label, stretches, " ".join(filter(None, (shown, times))), depth=depth))
    return rows


def _is_said_elsewhere(event: SpanEvent, of_a_call: bool, states: set[str]) -> bool:
    if event.name.startswith("debug.state."):
        return event.name.removeprefix("debug.state.") in states
    return event.name in _SAID_BY_THE_HEADER or (of_a_call and event.name.startswith(_SAID_BY_THE_CALL))


def place(attributes: Attributes) -> str:
    """The file's name and the line that the attributes give, or nothing."""
    path, line = attributes.get(FILE), attributes.get(LINE)
    if not isinstance(path, str):
        return ""
    # A Windows server's paths must be cut at backslashes, whatever this machine's are.
    name = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
    return f"{name or path}:{line}" if isinstance(line, int) else name or path


def _argument(attributes: Attributes) -> str:
    """The one argument that tells a call from its like: the expression, else the place."""
    text = attributes.get(ARGUMENTS)
    if isinstance(text, str):
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        expression = arguments.get("expression") if isinstance(arguments, dict) else None
        if isinstance(expression, str):
            return expression
    return place(attributes)
