"""What stands above and below the bars of a waterfall: whose session it is, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.text import Text

from otel_bridge.sessions.attributes import ERROR_TYPE, TOOL, TOOL_ERROR
from otel_bridge.sessions.span import Span
from otel_bridge.view.axis import Glyphs
from otel_bridge.view.escape import printable
from otel_bridge.view.rows import states
from otel_bridge.view.totals import CALL_PREFIX, is_call, is_failure, tally
from otel_bridge.view.units import duration, moment, span_duration

LANE_STATES = ("initializing", "running", "paused", "other")
STATE_STYLES = {"initializing": "dim", "running": "green", "paused": "yellow", "other": "magenta"}
_SLOWEST = 3
_FAILURE_TYPES = 6
_LABEL_CELLS = 10


def header(spans: Sequence[Span], width: int, glyphs: Glyphs, ascii_only: bool) -> list[Text]:
    """Session, language, trace id; start, duration, calls, failures, and how it ended."""
    between = f" {glyphs.dot} "
    trace = Text(f"trace {spans[0].trace_id:032x}", "dim")
    sessions = tally(spans).sessions()
    if not sessions:
        start = Text(moment(min(span.start_ns for span in spans)))
        return [*flow([Text("no session", "bold"), trace], between, width), start]
    session = sessions[0]
    title = [
        Text(printable(session.name or "unnamed", width // 2, ascii_only=ascii_only), "bold"),
        Text(printable(session.language or "unknown language", 20, ascii_only=ascii_only)),
        trace,
    ]
    facts = [
        Text(moment(session.start_ns)),
        Text(duration(session.duration_ns, ascii_only=ascii_only)),
        Text(f"{session.calls} call{'' if session.calls == 1 else 's'}"),
    ]
    if session.failures:
        facts.append(Text(f"{session.failures} failed", "red"))
    if session.unanswered:
        facts.append(Text(f"{session.unanswered} unanswered", "yellow"))
    facts.append(Text(printable(session.end, 20, ascii_only=ascii_only), "" if session.end == "closed" else "yellow"))
    if session.partial:
        facts.append(Text("the log begins in the middle of it", "yellow"))
    return [*flow(title, between, width), *flow(facts, between, width)]


def summary(spans: Sequence[Span], width: int, glyphs: Glyphs, ascii_only: bool) -> list[Text]:
    """The time in each state (the legend of the lane too), the slowest calls, and the failures by type."""
    lines = _time_in_states(spans, width, glyphs, ascii_only)
    calls = [span for span in spans if is_call(span)]
    between = f" {glyphs.dot} "
    if len(calls) > 1:
        whole_ns = max(span.end_ns for span in spans) - min(span.start_ns for span in spans)
        took_ns = covered_ns((call.start_ns, call.end_ns) for call in calls)
        took, whole = (duration(length_ns, ascii_only=ascii_only) for length_ns in (took_ns, whole_ns))
        lines += _labelled("in calls", [Text(f"{took} of {whole} ({took_ns * 100 // max(whole_ns, 1)} %)")], "", width)
        slowest = sorted(calls, key=lambda span: span.end_ns - span.start_ns, reverse=True)[:_SLOWEST]
        told = [
            Text(f"{_tool(call, ascii_only)} {span_duration(call.end_ns - call.start_ns, ascii_only=ascii_only)}")
            for call in slowest
        ]
        lines += _labelled("slowest", told, between, width)
    failures = Counter(
        (
            _tool(call, ascii_only),
            printable(str(call.attributes.get(ERROR_TYPE, TOOL_ERROR)), 30, ascii_only=ascii_only),
        )
        for call in calls
        if is_failure(call)
    )
    if failures:
        told = [
            Text(f"{tool} {error_type}" + (f" x{times}" if times > 1 else ""), "red")
            for (tool, error_type), times in failures.most_common(_FAILURE_TYPES)
        ]
        rest = failures.total() - sum(times for _, times in failures.most_common(_FAILURE_TYPES))
        told += [Text(f"{rest} more", "red")] if rest else []
        lines += _labelled("failed", told, between, width)
    return lines


def covered_ns(stretches: Iterable[tuple[int, int]]) -> int:
    """How much time `(start_ns, end_ns)` stretches cover, what they share counted once."""
    total_ns = reached_ns = 0
    for start_ns, end_ns in sorted(stretches):
        total_ns += max(end_ns - max(start_ns, reached_ns), 0)
        reached_ns = max(reached_ns, end_ns)
    return total_ns


def flow(parts: Sequence[Text], between: str, width: int) -> list[Text]:
    """The parts side by side, on as many lines as the width asks for; no part is cut in two."""
    lines = [Text()]
    for part in parts:
        if lines[-1] and lines[-1].cell_len + len(between) + part.cell_len > width:
            lines.append(Text())
        lines[-1].append(between if lines[-1] else "").append_text(part)
    return lines


def _time_in_states(spans: Sequence[Span], width: int, glyphs: Glyphs, ascii_only: bool) -> list[Text]:
    in_state: Counter[str] = Counter()
    for start_ns, end_ns, state in states(spans):
        in_state[state if state in LANE_STATES else "other"] += end_ns - start_ns
    parts = [
        Text()
        .append(glyphs.lane[LANE_STATES.index(state)], STATE_STYLES[state])
        .append(f" {state} {duration(in_state[state], ascii_only=ascii_only)}")
        for state in LANE_STATES
        if state in in_state
    ]
    return _labelled("states", parts, "  ", width) if parts else []


def _tool(call: Span, ascii_only: bool) -> str:
    name = str(call.attributes.get(TOOL, call.name.removeprefix(CALL_PREFIX)))
    return printable(name, 30, ascii_only=ascii_only)


def _labelled(label: str, parts: Sequence[Text], between: str, width: int) -> list[Text]:
    lines = flow(parts, between, width - _LABEL_CELLS)
    heads = [label, *[""] * (len(lines) - 1)]
    return [
        Text().append(head.ljust(_LABEL_CELLS), "bold").append_text(line)
        for head, line in zip(heads, lines, strict=True)
    ]
