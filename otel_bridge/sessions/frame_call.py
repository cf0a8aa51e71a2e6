"""A tool call as its frames show it, from the request to the answer, and the span that it becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, Failure, low_cardinality
from otel_bridge.sessions.ids import root_span_id, span_id, trace_id_of_entry
from otel_bridge.sessions.open_span import SHORTEST_NS, OpenSpan
from otel_bridge.sessions.span import AttributeValue, Span, SpanKind, SpanLink
from otel_bridge.sessions.trace_context import TraceContext


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended: when (Unix ns), why it failed if it did, and what the answer adds to the attributes.

    `created` is the session that the call made, by its id; `outcome` says why there is no answer, where there is none.
    """

    end_ns: int
    failure: Failure | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    created: str | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What a create call asked for; the session is made of it where the log does not tell of it."""

    name: str | None
    language: str | None
    executable: str | None


@dataclass(frozen=True, slots=True)
class Home:
    """The session that a call belongs to, as far as its span has to know it."""

    trace_id: int
    root_ns: int
    common: Mapping[str, AttributeValue]


@dataclass(slots=True, eq=False)
class FrameCall:
    """A `tools/call` that passed.

    `opener` is the run's random id, the frame's direction and number, and the request's place in it. `session_key` and
    `digest` tell which `tool:call` of the log is this call: its session id as JSON, and a hash of its redacted
    arguments. `log_span` is the span that the log's entries made of it: its events are of interest, and `log_answer`,
    how it ended there.
    """

    opener: bytes
    tool: str
    session_key: str
    digest: str
    start_ns: int
    attributes: AttributeSet
    session_id: str | None = None
    asked: SessionRequest | None = None
    caller: TraceContext | None = None
    answer: Answer | None = None
    cancelled_ns: int | None = None
    log_number: int | None = None
    """Which of the log's calls it is; None as long as that was not read."""
    log_span: OpenSpan | None = None
    log_answer: Answer | None = None
    due_s: float = math.inf
    """When it is given out even if the log has not told all of it; a monotonic clock's time, not saved."""

    @property
    def span_id(self) -> int:
        """The id of its span."""
        return span_id(0, self.opener)

    def spans(self, home: Home | None, *, join_caller: bool) -> list[Span]:
        """The finished span, and one more for events that are over the limit. It must have an answer."""
        assert self.answer is not None
        answer, caller = self.answer, self.caller
        own = self.log_span or OpenSpan(0, "", SpanKind.SERVER, 0, AttributeSet())
        own.span_id = self.span_id
        own.name = f"tools/call {low_cardinality(self.tool)}"
        own.attributes = AttributeSet({**_of_the_log(own.attributes), **self.attributes, **answer.attributes})
        if answer.outcome:
            own.attributes[names.OUTCOME] = answer.outcome
        trace_id, parent_id = _place(self.opener, home)
        links: list[SpanLink] = []
        if caller and join_caller:
            trace_id, parent_id = caller.trace_id, caller.span_id
            if home:
                links.append(SpanLink(home.trace_id, root_span_id(home.trace_id)))
        elif caller:
            links.append(SpanLink(caller.trace_id, caller.span_id, caller.trace_state))
        start_ns = max(self.start_ns, home.root_ns if home else 0)
        span, *more = own.finish(
            trace_id,
            parent_id,
            home.common if home else {},
            not_before_ns=start_ns,
            end_ns=answer.end_ns,
            failure=answer.failure,
        )
        span = replace(
            span,
            start_ns=start_ns,
            end_ns=max(answer.end_ns, start_ns + SHORTEST_NS),
            links=tuple(links),
            trace_state=caller.trace_state if caller and join_caller else "",
        )
        return [span, *more]


def _place(opener: bytes, home: Home | None) -> tuple[int, int]:
    """Trace and parent of a call that joins nobody: its session's root, else a trace of its own."""
    return (home.trace_id, root_span_id(home.trace_id)) if home else (trace_id_of_entry(opener), 0)


def _of_the_log(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """What the log's entries add: not their judgement, which the frames know better."""
    return {name: value for name, value in attributes.items() if name not in (names.OUTCOME, names.PARTIAL)}
