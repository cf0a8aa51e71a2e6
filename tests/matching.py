"""Holds the spans of tool calls against the client's own record of the calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from otel_bridge.sessions.redaction import redact
from otel_bridge.sessions.span import Span, StatusCode
from tests.calls import Call

AHEAD_MS = 250.0
"""How much earlier than the client's own start a call can be logged: two clocks, and whole milliseconds."""


@dataclass(frozen=True)
class CallSpan:
    """What a tool call's span says, from our own values or from a backend."""

    trace_id: str
    tool: str
    arguments: object
    start_ms: float
    end_ms: float
    failed: bool
    error: str
    unanswered: bool
    partial: bool


def call_spans(spans: Iterable[Span]) -> list[CallSpan]:
    """The tool calls among spans, by their start."""
    found = [
        CallSpan(
            f"{span.trace_id:032x}",
            str(span.attributes["gen_ai.tool.name"]),
            json.loads(str(span.attributes.get("gen_ai.tool.call.arguments", "null"))),
            span.start_ns / 1e6,
            span.end_ns / 1e6,
            span.status is StatusCode.ERROR,
            span.status_message,
            span.attributes.get("otel_bridge.outcome") == "unanswered",
            span.attributes.get("otel_bridge.partial") is True,
        )
        for span in spans
        if span.name.startswith("tools/call ")
    ]
    return sorted(found, key=lambda span: span.start_ms)


@dataclass(frozen=True)
class Match:
    """A call and its span, or None for a call that the log has not."""

    call: Call
    span: CallSpan | None

    @property
    def end_error_ms(self) -> float | None:
        """How far the span's end is from the client's, where both know one."""
        if self.span is None or self.span.unanswered or self.call.end_ms is None:
            return None
        return abs(self.span.end_ms - self.call.end_ms)


def match(calls: Sequence[Call], spans: Iterable[CallSpan]) -> tuple[list[Match], list[CallSpan]]:
    """Each call with its span, and the spans that no call has.

    A server on stdio reads calls in the order in which they were sent, so of equal calls the first span is the first
    call's. Which end belongs to which of several equal calls sent at once is not to be told; they are sorted.
    """
    left = [span for span in spans if not span.partial]
    pairs: list[tuple[Call, CallSpan | None]] = []
    for call in calls:
        raw = call.arguments.get("name") == call.tool  # a hand-made request, recorded whole
        wanted = _comparable(call.arguments.get("arguments", {}) if raw else call.arguments)
        fitting = (s for s in left if s.tool == call.tool and _comparable(s.arguments) == wanted)
        span = next((s for s in fitting if s.start_ms >= call.start_ms - AHEAD_MS), None)
        if span is not None:
            left.remove(span)
        pairs.append((call, span))
    return [Match(call, span) for call, span in pairs], left


def _comparable(arguments: object) -> str:
    """Arguments as the span has them: redacted, and without the path that the server hides itself."""
    shown = redact(arguments)
    if isinstance(shown, dict):
        shown = {name: value for name, value in shown.items() if name != "executablePath"}
    return json.dumps(shown, sort_keys=True)
