"""A tool call as its frames show it, from the request to the answer, and the span that it becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, Failure, call_name
from otel_bridge.sessions.calls import CLOSE
from otel_bridge.sessions.ids import root_span_id, span_id, trace_id_of_entry
from otel_bridge.sessions.open_span import SHORTEST_NS, OpenSpan
from otel_bridge.sessions.span import AttributeValue, Span, SpanKind, SpanLink, StatusCode
from otel_bridge.sessions.trace_context import TraceContext

_RUN_ID_BYTES: Final = 16


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

    @property
    def order(self) -> bytes:
        """Its place among the requests of its run, to be compared with others."""
        return self.opener[_RUN_ID_BYTES:]

    def spans(self, home: Home | None, *, join_caller: bool) -> list[Span]:
        """The finished span, and one more for events that are over the limit. It must have an answer."""
        assert self.answer is not None
        answer, caller = self.answer, self.caller
        own = self.log_span or OpenSpan(0, "", SpanKind.SERVER, 0, AttributeSet())
        own.span_id = self.span_id
        own.name = call_name(self.tool)
        own.attributes = AttributeSet({**_of_the_log(own.attributes), **self.attributes, **answer.attributes})
        if answer.outcome:
            own.attributes[names.OUTCOME] = answer.outcome
        trace_id, parent_id = _place(self.opener, home)
        links: list[SpanLink] = []
        has_joined = caller is not None and join_caller
        if caller and has_joined:
            trace_id, parent_id = caller.trace_id, caller.span_id
            if home:
                links.append(SpanLink(home.trace_id, root_span_id(home.trace_id)))
        elif caller:
            links.append(SpanLink(caller.trace_id, caller.span_id, caller.trace_state, is_remote=True))
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
            trace_state=caller.trace_state if caller and has_joined else "",
            is_parent_remote=has_joined,
        )
        return [span, *[replace(one, is_parent_remote=has_joined) for one in more]]


def _place(opener: bytes, home: Home | None) -> tuple[int, int]:
    """Trace and parent of a call that joins nobody: its session's root, else a trace of its own."""
    return (home.trace_id, root_span_id(home.trace_id)) if home else (trace_id_of_entry(opener), 0)


def _of_the_log(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """What the log's entries add: not their judgement, which the frames know better."""
    return {name: value for name, value in attributes.items() if name not in (names.OUTCOME, names.PARTIAL)}


def answer_in_log(span: Span) -> Answer:
    """How the log says that a call ended, from the span that its entries made of it."""
    failed = span.status is StatusCode.ERROR
    failure = Failure(str(span.attributes.get(names.ERROR_TYPE)), span.status_message) if failed else None
    return Answer(span.end_ns, failure, outcome=str(span.attributes.get(names.OUTCOME, "")))


def without_answer(call: FrameCall, session_ms: int) -> Answer:
    """The end of a call that none came for: given up by the client, or ended with its session, last heard of then."""
    if call.cancelled_ns is not None:
        return Answer(call.cancelled_ns, outcome="cancelled")
    return Answer(max(call.start_ns + SHORTEST_NS, session_ms * NS_PER_MS), outcome="unanswered")


def created_by(call: FrameCall, session_id: str) -> Entry:
    """What the log would have told of the session that this call made."""
    fields: dict[str, object] = {"sessionId": session_id}
    if call.asked is not None:
        asked = {"sessionName": call.asked.name, "language": call.asked.language}
        asked["executablePath"] = call.asked.executable
        fields |= {name: value for name, value in asked.items() if value is not None}
    return Entry("session:created", "", call.start_ns // 1_000_000, fields)


def closed_by(call: FrameCall) -> Entry | None:
    """What the log would have told of the end of the session that this call closed; None if it closed none."""
    answer = call.answer
    if call.tool != CLOSE or answer is None or answer.failure or answer.outcome:
        return None
    return Entry("session:closed", "", answer.end_ns // 1_000_000, {"sessionId": call.session_id})
