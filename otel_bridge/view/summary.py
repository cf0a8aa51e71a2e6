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
from otel_bridge.view.units import duration, moment

LANE_STATES = ("initializing", "running", "paused", "other")
STATE_STYLES = {"initializing": "bright_black", "running": "green", "paused": "yellow", "other": "magenta"}
_SLOWEST = 3
_LABEL_CELLS = 10


def header(spans: Sequence[Span], width: int, glyphs: Glyphs, ascii_only: bool) -> list[Text]:
    """Session, language, trace id; start, duration, calls, failures, and how it ended."""
    dot = f" {glyphs.dot} "
    trace_id = f"{spans[0].trace_id:032x}"
    sessions = tally(spans).sessions()
    title = Text()
    if not sessions:
        title.append("no session", "bold").append(dot + trace_id, "bright_black")
        start_ns = min(span.start_ns for span in spans)
        return [title, Text(moment(start_ns))]
    session = sessions[0]
    title.append(printable(session.name or "unnamed", width // 2, ascii_only=ascii_only), "bold")
    language = printable(session.language or "unknown language", 20, ascii_only=ascii_only)
    title.append(f"{dot}{language}").append(f"{dot}trace {trace_id}", "bright_black")
    facts = Text(moment(session.start_ns) + dot + duration(session.duration_ns, ascii_only=ascii_only))
    facts.append(dot + _counted(session.calls, "call"))
    if session.failures:
        facts.append(dot).append(f"{session.failures} failed", "red")
    if session.unanswered:
        facts.append(dot).append(f"{session.unanswered} unanswered", "yellow")
    facts.append(dot).append(session.end, "" if session.end == "closed" else "yellow")
    if session.partial:
        facts.append(f"{dot}the log begins in the middle", "yellow")
    return [title, facts]


def summary(spans: Sequence[Span], width: int, glyphs: Glyphs, ascii_only: bool) -> list[Text]:
    """The time in each state (the legend of the lane too), the slowest calls, and the failures by type."""
    lines = []
    in_state: Counter[str] = Counter()
    for start_ns, end_ns, state in states(spans):
        in_state[state if state in LANE_STATES else "other"] += end_ns - start_ns
    if in_state:
        line = _labelled("states")
        for state in filter(in_state.__contains__, LANE_STATES):
            line.append(glyphs.lane[LANE_STATES.index(state)] * 2, STATE_STYLES[state])
            line.append(f" {state} {duration(in_state[state], ascii_only=ascii_only)}  ")
        line.rstrip()
        lines.append(line)
    calls = [span for span in spans if is_call(span)]
    if len(calls) > 1:
        whole_ns = max(span.end_ns for span in spans) - min(span.start_ns for span in spans)
        took_ns = covered_ns((call.start_ns, call.end_ns) for call in calls)
        took, whole = (duration(length_ns, ascii_only=ascii_only) for length_ns in (took_ns, whole_ns))
        lines.append(_labelled("in calls", f"{took} of {whole} ({took_ns * 100 // max(whole_ns, 1)} %)", width))
        slow = sorted(calls, key=lambda span: span.end_ns - span.start_ns, reverse=True)[:_SLOWEST]
        told = [f"{_tool(call)} {duration(call.end_ns - call.start_ns, ascii_only=ascii_only)}" for call in slow]
        lines.append(_labelled("slowest", f" {glyphs.dot} ".join(told), width, ascii_only))
    failures = Counter(
        (str(call.attributes.get(ERROR_TYPE, TOOL_ERROR)), _tool(call)) for call in calls if is_failure(call)
    )
    if failures:
        told = [
            f"{tool} {error_type}" + (f" x{n}" if n > 1 else "") for (error_type, tool), n in failures.most_common()
        ]
        lines.append(_labelled("failed", f" {glyphs.dot} ".join(told), width, ascii_only, "red"))
    return lines


def covered_ns(stretches: Iterable[tuple[int, int]]) -> int:
    """How much time `(start_ns, end_ns)` stretches cover, what they share counted once."""
    total_ns = reached_ns = 0
    for start_ns, end_ns in sorted(stretches):
        total_ns += max(end_ns - max(start_ns, reached_ns), 0)
        reached_ns = max(reached_ns, end_ns)
    return total_ns


def _tool(call: Span) -> str:
    return str(call.attributes.get(TOOL, call.name.removeprefix(CALL_PREFIX)))


def _labelled(label: str, text: str = "", width: int = 0, ascii_only: bool = False, style: str = "") -> Text:
    line = Text().append(label.ljust(_LABEL_CELLS), "bold")
    # The dots between come from us and can be drawn; the rest is the log's.
    return line.append(printable(text, max(width - _LABEL_CELLS, 1), ascii_only=ascii_only), style)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
