"""Logs in the form of the specification, which is newer than any server that can be had."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from otel_bridge.entries.entry import Malformed
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.reader import EntryReader
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span, StatusCode
from tests.calls import Call, Outcome
from tests.recordings import Recording, recordings
from tests.sessions.entries import one
from tests.sessions.reading import items_of
from tests.sessions.test_recordings import LOST_LINES, WIDE, matches, spans_of

SPECIFICATION = Path(__file__).parent.parent / "data" / "specification" / "logging-format-specification.md"
RECORDINGS = {recording.name: recording for recording in recordings()}

NAMESPACES = {
    "tool": "debug-mcp:tools",
    "debug:state": "debug-mcp:state",
    "debug:breakpoint": "debug-mcp:breakpoint",
    "debug:output": "debug-mcp:output",
    "session": "debug-mcp:session",
}
ORDER = ("timestamp", "level", "namespace", "message", "tool", "event", "sessionId", "sessionName")


def examples() -> bytes:
    """The entries of the specification's own examples, commas mended, in the order of their times."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    found = [
        json.loads(re.sub(r",(\s*})", r"\1", block))
        for block in re.findall(r"^\{.*?^\}", text, re.DOTALL | re.MULTILINE)
    ]
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in sorted(found, key=lambda entry: entry["timestamp"]))


def mapped(log: bytes, options: MappingOptions = WIDE) -> list[Span]:
    """All spans of a finished log."""
    mapping = LogMapping(options)
    spans = mapping.take(items_of(log))
    return spans + mapping.end(mapping.latest_ms + 10 * options.idle_timeout_ms)


def test_the_examples_become_the_trace_that_they_imply() -> None:
    """One session of 310 s: a breakpoint set and verified, a failed start, a pause, some output, closed."""
    spans = mapped(examples())
    root = one(spans, "debug_session python")
    lifetime = one(spans, "debug_session lifetime")

    assert {root.trace_id} == {span.trace_id for span in spans}
    assert (lifetime.end_ns - lifetime.start_ns) / 1e9 == 310.0
    assert (
        lifetime.attributes["debug.session.end_reason"],
        lifetime.attributes["debug.session.duration_ms"],
    ) == ("closed", 310_000)
    set_breakpoint = one(spans, "tools/call set_breakpoint")
    assert (set_breakpoint.end_ns - set_breakpoint.start_ns) / 1e6 == 333.0
    assert (
        set_breakpoint.attributes["code.file.path"],
        set_breakpoint.attributes["code.line.number"],
    ) == ("path/to/file.py", 42)
    start = one(spans, "tools/call start_debugging")
    assert (
        start.status,
        start.status_message,
        start.attributes["otel_bridge.partial"],
    ) == (StatusCode.ERROR, "Failed to connect to debugger", True)
    paused = one(spans, "debuggee paused")
    told = ("debug.state.reason", "code.file.path", "code.line.number", "code.function.name", "thread.id")
    assert tuple(paused.attributes[n] for n in told) == ("breakpoint", "/workspace/src/main.py", 42, "process_data", 1)
    assert [event.name for event in paused.events] == [
        "debug.state.paused",
        "debug.breakpoint.verified",
        "debug.output",
    ]


def test_the_examples_as_they_are_printed_are_no_json_and_are_named() -> None:
    """A trailing comma is counted as malformed, not guessed at."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    blocks = re.findall(r"^\{.*?^\}", text, re.DOTALL | re.MULTILINE)
    reader = EntryReader("spec.log")
    items = reader.feed(b"".join(re.sub(r"\s*\n\s*", " ", block).encode() + b"\n" for block in blocks))

    flaws = Counter(item.flaw for item in items if isinstance(item, Malformed))
    assert flaws == {Flaw.TRAILING_COMMA: 8}


def in_the_specifications_form(recording: Recording) -> bytes:
    """A real log with the specification's times, namespaces and key order, and `success` as the client saw it."""
    answered = iter(_answers(recording))
    lines = []
    for line in recording.lines:
        try:
            entry = json.loads(line)
        except ValueError:
            lines.append(line)
            continue
        when = entry["timestamp"]
        if isinstance(when, int):
            when = datetime.fromtimestamp(when / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry["timestamp"] = when
        kind = str(entry["message"])
        if kind == "tool:response":
            entry["success"] = next(answered)
        for prefix, namespace in NAMESPACES.items():
            if kind.startswith(prefix + ":") or kind == prefix:
                entry["namespace"] = namespace
        rest = {name: value for name, value in entry.items() if name not in ORDER}
        ordered = {name: entry[name] for name in ORDER if name in entry} | rest
        lines.append(json.dumps(ordered, separators=(", ", ": ")).encode() + b"\n")
    return b"".join(lines)


def _answers(recording: Recording) -> list[bool]:
    """What each `tool:response` of the log would have said: the client's word on the call that ends there."""
    responses = [item for item in items_of(recording.log) if getattr(item, "kind", "") == "tool:response"]
    by_end: dict[tuple[int, str], list[Call]] = {}
    for found in matches(recording):
        if found.span is not None and not found.span.unanswered and found.call.outcome is not Outcome.RPC_ERROR:
            by_end.setdefault((round(found.span.end_ms), found.call.tool), []).append(found.call)
    answers = []
    for response in responses:
        fields = getattr(response, "fields", {})
        waiting = by_end.get((response.time_ms, str(fields.get("tool"))))
        if not waiting:  # a call of less than a microsecond is made one: its end is no whole millisecond
            answers.append(True)
            continue
        call = waiting.pop(0)
        answers.append(call.success is not False)
    return answers


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in LOST_LINES])
def test_a_real_log_in_the_specifications_form_gives_the_same_ids(name: str) -> None:
    """Neither times as text, key order, namespaces nor the truth about success move a span."""
    real = {span.span_id: span for span in spans_of(RECORDINGS[name])}
    rewritten = {span.span_id: span for span in mapped(in_the_specifications_form(RECORDINGS[name]))}

    assert real.keys() == rewritten.keys()
    for span_id, span in real.items():
        other = rewritten[span_id]
        assert (span.trace_id, span.parent_id, span.name, span.start_ns, span.end_ns, len(span.events)) == (
            other.trace_id,
            other.parent_id,
            other.name,
            other.start_ns,
            other.end_ns,
            len(other.events),
        )
        # nothing else differs but what success tells, and the totals that count it
        told = {"error.type", "debug.session.failed"}
        assert {n: v for n, v in span.attributes.items() if n not in told} == {
            n: v for n, v in other.attributes.items() if n not in told
        }
        assert replace(span, attributes={}, status=StatusCode.UNSET, status_message="", events=()) == replace(
            other, attributes={}, status=StatusCode.UNSET, status_message="", events=()
        )


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in LOST_LINES])
def test_outcomes_are_exact_where_success_tells_the_truth(name: str) -> None:
    """A span is an error exactly where the client saw one."""
    calls = {
        (found.call.tool, round(found.span.start_ms, 3), found.span.trace_id): found.call
        for found in matches(RECORDINGS[name])
        if found.span is not None and not found.span.unanswered
    }
    failed = {
        (str(span.attributes["gen_ai.tool.name"]), round(span.start_ns / 1e6, 3), f"{span.trace_id:032x}")
        for span in mapped(in_the_specifications_form(RECORDINGS[name]))
        if span.name.startswith("tools/call ") and span.status is StatusCode.ERROR
    }
    expected = {key for key, call in calls.items() if call.outcome is Outcome.RPC_ERROR or call.success is False}

    assert expected == failed


def test_no_other_kind_is_in_the_examples() -> None:
    """The test above would miss an example that the mapping ignored."""
    assert len(items_of(examples())) == 8
