"""DAP traces as spans: why a tool call took as long as it did.

A request and its response is a CLIENT span below the call that it happened in. Trace file and log come in any order,
so a pair waits until the log has gone past it: every call of its time has ended, and an entry came 200 ms later. Then
tail and replay choose the same parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from otel_bridge.entries.dap import DapMessage
from otel_bridge.entries.entry import Entry
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, Failure, MappingOptions, low_cardinality
from otel_bridge.sessions.calls import OpenCall
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.clip import clip_json, clip_text
from otel_bridge.sessions.evidence import call_key
from otel_bridge.sessions.ids import canonical_json, derived_span_id
from otel_bridge.sessions.open_span import SHORTEST_NS, OpenSpan, event_from_json, event_to_json, events_span
from otel_bridge.sessions.redaction import redact, redact_text
from otel_bridge.sessions.span import Span, SpanEvent, SpanKind

SETTLED_AFTER_MS: Final = 200

MOST_ENDED: Final = 20_000
"""Ended calls of a session that are remembered at the most, while one of its traces is read behind another."""

ISSUED_BY: Final = {
    "initialize": frozenset(("start_debugging", "restart_debugging", "attach_to_process", "create_debug_session")),
    "launch": frozenset(("start_debugging", "restart_debugging")),
    "attach": frozenset(("attach_to_process", "create_debug_session")),
    "configurationDone": frozenset(("start_debugging", "restart_debugging", "attach_to_process")),
    "setExceptionBreakpoints": frozenset(("start_debugging", "restart_debugging", "attach_to_process")),
    "setBreakpoints": frozenset(
        ("set_breakpoint", "remove_breakpoint", "clear_breakpoints", "start_debugging", "restart_debugging")
    ),
    "setFunctionBreakpoints": frozenset(
        ("set_breakpoint", "remove_breakpoint", "clear_breakpoints", "start_debugging", "restart_debugging")
    ),
    "evaluate": frozenset(("evaluate_expression",)),
    "variables": frozenset(("get_variables", "get_local_variables")),
    "scopes": frozenset(("get_scopes", "get_local_variables")),
    "stackTrace": frozenset(("get_stack_trace", "get_local_variables", "evaluate_expression")),
    "threads": frozenset(("list_threads", "get_stack_trace")),
    "next": frozenset(("step_over",)),
    "stepIn": frozenset(("step_into",)),
    "stepOut": frozenset(("step_out",)),
    "continue": frozenset(("continue_execution",)),
    "pause": frozenset(("pause_execution",)),
    "disconnect": frozenset(("close_debug_session", "detach_from_process", "restart_debugging")),
    "terminate": frozenset(("close_debug_session", "restart_debugging")),
}
"""The tools that issue a DAP command, for when calls of several contain it."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A call that has ended: when it was in flight (ns), its span, and what names it."""

    start_ns: int
    end_ns: int
    span_id: int
    tool: str
    key: str | None


@dataclass(frozen=True, slots=True)
class _Request:
    command: str
    seq: int
    start_ms: int
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Pair:
    request: _Request
    end_ms: int | None
    failure: Failure | None
    body: str | None = None
    """The response's body as JSON text, shortened; None below `full`, where bodies hold values."""


@dataclass(slots=True)
class DapSpans:
    """The DAP trace of one session: `take` messages as they are read, `place` what the log has passed by now.

    `max_ended` calls are remembered while no message was read: most sessions have no trace.
    """

    trace_id: int
    root_id: int
    root_ns: int
    common: AttributeSet
    options: MappingOptions
    max_ended: int
    ended: list[Interval] = field(default_factory=list)
    _asked: dict[tuple[str, str, int], _Request] = field(default_factory=dict)
    """By run, direction and sequence number: each run counts anew, and one may be read beside another."""
    _waiting: list[_Pair] = field(default_factory=list)
    _output: dict[str, list[SpanEvent]] = field(default_factory=dict)
    _outputs: dict[str, int] = field(default_factory=dict)
    """How many spans of output there were, by run."""
    _read_ms: dict[str, int] = field(default_factory=dict)

    def call_ended(self, call: OpenCall, end_ns: int) -> None:
        """Notes when a call of the session was in flight."""
        self.ended.append(Interval(call.span.start_ms * NS_PER_MS, end_ns, call.span.span_id, call.tool, call.key))
        if len(self.ended) > (MOST_ENDED if self._read_ms else self.max_ended):
            del self.ended[0]

    def take(self, message: DapMessage, run: str = "") -> list[Span]:
        """Notes a message of one run of the session; gives back output that became final."""
        payload, kind = message.payload, message.payload.get("type")
        self._read_ms[run] = max(self._read_ms.get(run, 0), message.time_ms)
        seq = payload.get("request_seq" if kind == "response" else "seq")
        if kind == "request" and isinstance(seq, int):
            request = _Request(redact_text(str(payload.get("command"))), seq, message.time_ms, self._arguments(payload))
            self._asked[run, message.direction, seq] = request
            return self._end_output(run)
        if kind == "response" and isinstance(seq, int):
            asked = self._asked.pop((run, "in" if message.direction == "out" else "out", seq), None)
            if asked is not None:
                self._waiting.append(_Pair(asked, message.time_ms, self._failure(payload), self._body(payload, asked)))
            return []
        if payload.get("event") == "output":
            return self._add_output(message, run)
        return []

    def place(self, open_calls: list[OpenCall], log_ms: int, *, over: bool) -> list[Span]:
        """The spans of the pairs that the log has passed: all of them when the session is over."""
        spans: list[Span] = []
        first_open_ms = min((call.span.start_ms for call in open_calls), default=None)
        left: list[_Pair] = []
        for pair in self._waiting:
            end_ms = pair.request.start_ms if pair.end_ms is None else pair.end_ms
            in_flight = first_open_ms is not None and first_open_ms <= end_ms
            if over or (not in_flight and log_ms >= end_ms + SETTLED_AFTER_MS):
                spans += self._span(pair)
            else:
                left.append(pair)
        self._waiting = left
        self._forget_calls()
        return spans

    def close(self) -> list[Span]:
        """No more will be read: what was asked and not answered is final too."""
        self._waiting += [_Pair(request, None, None) for request in self._asked.values()]
        self._asked.clear()
        spans = self.place([], 0, over=True)
        return spans + [span for run in list(self._output) for span in self._end_output(run)]

    @property
    def has_waiting(self) -> bool:
        """Whether pairs wait for the log to pass them."""
        return bool(self._waiting)

    def _forget_calls(self) -> None:
        """No pair that is still to come can lie in a call that ended before all that is unanswered began."""
        begun = [pair.request.start_ms for pair in self._waiting] + [one.start_ms for one in self._asked.values()]
        needed_ns = min([*begun, *self._read_ms.values()], default=0) * NS_PER_MS
        self.ended = [call for call in self.ended if call.end_ns >= needed_ns]

    def _span(self, pair: _Pair) -> list[Span]:
        request = pair.request
        start_ns = request.start_ms * NS_PER_MS
        end_ns = start_ns + SHORTEST_NS if pair.end_ms is None else max(pair.end_ms * NS_PER_MS, start_ns + SHORTEST_NS)
        opener = canonical_json([request.command, request.seq, request.start_ms]).decode()
        attributes = AttributeSet()
        attributes.put("dap.command", request.command, self.options.max_value_bytes)
        attributes.put("dap.seq", request.seq, self.options.max_value_bytes)
        if pair.end_ms is None:
            attributes[names.OUTCOME] = "unanswered"
        if self.options.capture >= Capture.FULL:
            limit = self.options.max_value_bytes
            attributes["dap.arguments"] = clip_json(request.arguments, limit)
            if pair.body is not None:
                attributes["dap.body"] = pair.body
        span = OpenSpan(
            derived_span_id(self.root_id, "dap", opener),
            f"dap {low_cardinality(request.command)}",
            SpanKind.CLIENT,
            request.start_ms,
            attributes,
        )
        parent_id = self._parent(pair, max(start_ns, self.root_ns), end_ns)
        return span.finish(
            self.trace_id, parent_id, self.common, not_before_ns=self.root_ns, end_ns=end_ns, failure=pair.failure
        )

    def _parent(self, pair: _Pair, start_ns: int, end_ns: int) -> int:
        containing = [c for c in self.ended if max(c.start_ns, self.root_ns) <= start_ns and end_ns <= c.end_ns]
        if len(containing) == 1:
            return containing[0].span_id
        issuing = [call for call in containing if call.tool in ISSUED_BY.get(pair.request.command, ())]
        key = call_key("evaluate_expression", pair.request.arguments)
        same = [call for call in issuing if pair.request.command == "evaluate" and call.key == key]
        chosen = min(same or issuing, key=lambda call: call.end_ns, default=None)
        return chosen.span_id if chosen else self.root_id

    def to_json(self) -> dict[str, object]:
        """What is known so far, as JSON values; everything in it is redacted."""
        return {
            "ended": [[c.start_ns, c.end_ns, f"{c.span_id:016x}", c.tool, c.key] for c in self.ended],
            "asked": [[run, direction, *_request_to_json(one)] for (run, direction, _), one in self._asked.items()],
            "waiting": [
                [
                    _request_to_json(pair.request),
                    pair.end_ms,
                    [pair.failure.error_type, pair.failure.message] if pair.failure else None,
                    pair.body,
                ]
                for pair in self._waiting
            ],
            "output": {run: [event_to_json(event) for event in events] for run, events in self._output.items()},
            "outputs": dict(self._outputs),
            "read_ms": dict(self._read_ms),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Puts back what `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
        self.ended = [Interval(start, end, int(span, 16), tool, key) for start, end, span, tool, key in saved["ended"]]
        for run, direction, *request in saved["asked"]:
            one = _Request(*request)
            self._asked[run, direction, one.seq] = one
        self._waiting = [
            _Pair(_Request(*request), end_ms, Failure(*failure) if failure else None, body)
            for request, end_ms, failure, body in saved["waiting"]
        ]
        self._output = {run: [event_from_json(event) for event in events] for run, events in saved["output"].items()}
        self._outputs = {str(run): int(number) for run, number in saved["outputs"].items()}
        self._read_ms = {str(run): int(time_ms) for run, time_ms in saved["read_ms"].items()}

    def _failure(self, payload: Mapping[str, object]) -> Failure | None:
        if payload.get("success") is not False:
            return None
        message = payload.get("message")
        shown = redact_text(message) if isinstance(message, str) and self.options.capture >= Capture.ARGUMENTS else ""
        return Failure("dap_error", clip_text(shown, self.options.max_value_bytes))

    def _arguments(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """What is needed of a request's arguments: the expression to find its call by, all of them at `full`."""
        arguments = payload.get("arguments")
        if not isinstance(arguments, dict):
            return {}
        if self.options.capture < Capture.FULL:
            arguments = {name: arguments[name] for name in ("expression",) if name in arguments}
        redacted = redact(arguments)
        return redacted if isinstance(redacted, dict) else {}

    def _body(self, payload: Mapping[str, object], asked: _Request) -> str | None:
        body = payload.get("body")
        if self.options.capture < Capture.FULL or body is None:
            return None
        if isinstance(body, dict):
            # what was asked for tells what a result is: it is redacted beside it, and not sent twice
            asking = {name: asked.arguments[name] for name in ("expression", "name") if name in asked.arguments}
            redacted = redact({**asking, **body})
            body = {name: redacted[name] for name in redacted if name in body} if isinstance(redacted, dict) else {}
            return clip_json(body, self.options.max_value_bytes)
        return clip_json(redact(body), self.options.max_value_bytes)

    def _add_output(self, message: DapMessage, run: str) -> list[Span]:
        body = message.payload.get("body")
        said = body if isinstance(body, dict) else {}
        if said.get("category") == "telemetry":  # the adapter about itself, not the program's output
            return []
        fields = {name: said[name] for name in ("category", "output") if name in said}
        entry = Entry("debug:output", "", message.time_ms, {name: redact(value) for name, value in fields.items()})
        events = self._output.setdefault(run, [])
        events.append(names.event_of(entry, self.options))
        return self._end_output(run) if len(events) >= self.options.max_events else []

    def _end_output(self, run: str) -> list[Span]:
        """What the program wrote between two requests, as a span of its own: its calls may have been sent long ago."""
        events = self._output.pop(run, [])
        if not events:
            return []
        number = self._outputs.get(run, 0)
        self._outputs[run] = number + 1
        span_id = derived_span_id(self.root_id, "output", str(events[0].time_ns), str(number))
        return [events_span(self.trace_id, span_id, self.root_id, self.common, events, self.root_ns)]


def _request_to_json(request: _Request) -> list[object]:
    return [request.command, request.seq, request.start_ms, dict(request.arguments)]
