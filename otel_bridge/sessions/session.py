"""One debug session: its root, its calls, the states of the debugged program, and its lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Final

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, Failure, MappingOptions, low_cardinality
from otel_bridge.sessions.calls import CallBook, OpenCall
from otel_bridge.sessions.clip import clip_json
from otel_bridge.sessions.dap_spans import DapSpans
from otel_bridge.sessions.evidence import Result
from otel_bridge.sessions.ids import Occurrences, root_span_id, span_id, trace_id_of_session
from otel_bridge.sessions.open_span import OpenSpan, events_span, snapshot_of
from otel_bridge.sessions.span import Span, SpanEvent, SpanKind

OPENS_NO_SPAN: Final = frozenset(("created", "stopped"))
"""States in which there is no debugged program to show."""


@dataclass(slots=True)
class Totals:
    """What the lifetime span says of the whole session."""

    calls: int = 0
    failed: int = 0
    unanswered: int = 0
    pauses: int = 0
    paused_ms: int = 0
    running_ms: int = 0


@dataclass(slots=True)
class Session:
    """An open session. Its methods take what the log says next and give back the spans that became final."""

    session_id: str
    options: MappingOptions
    occurrences: Occurrences
    root_ms: int
    last_ms: int
    name: str | None = None
    language: str | None = None
    trace_id: int = 0
    root_id: int = 0
    common: AttributeSet = field(default_factory=AttributeSet)
    """What stands on every span of the session: a search finds spans, not roots (Tempo)."""
    book: CallBook = field(default_factory=CallBook)
    lifetime: OpenSpan | None = None
    """None when it was sent, or when the session lives on only in late calls."""
    closed_ms: int | None = None
    state: OpenSpan | None = None
    state_name: str = ""
    has_state_lines: bool = False
    held: Entry | None = None
    """A `debug:state`, until the next entry says whether it belongs to the state that begins."""
    totals: Totals = field(default_factory=Totals)
    dap: DapSpans | None = None
    """Its DAP trace, where there may be one."""
    entries: int = 0
    pending: int = 0
    """Calls of it that are not in the book and will still be counted: whoever sees the frames knows of them."""

    def __post_init__(self) -> None:
        if self.language is not None:
            self.language = _shared(self.language)
        self.trace_id = self.trace_id or trace_id_of_session(self.session_id)
        self.root_id = root_span_id(self.trace_id)
        limit = self.options.max_value_bytes
        self.common.put(names.SESSION_ID, self.session_id, limit)
        self.common.put(names.SESSION_NAME, self.name, limit)
        self.common.put(names.SESSION_LANGUAGE, self.language, limit)

    @property
    def root_ns(self) -> int:
        """Start of the root, in Unix ns: no span of the session starts before it."""
        root_ns: int = self.root_ms * NS_PER_MS
        return root_ns

    def root(self, executable: object, *, partial: bool) -> Span:
        """The root: an instant that comes first, because the real server often never says that a session ended."""
        extra = AttributeSet(self.common)
        extra.put(names.EXECUTABLE, executable, self.options.max_value_bytes)
        if partial:
            extra[names.PARTIAL] = True
        name = f"{names.ROOT_NAME} {low_cardinality(self.language)}" if self.language else names.ROOT_NAME
        return Span(
            trace_id=self.trace_id,
            span_id=self.root_id,
            parent_id=0,
            name=name,
            kind=SpanKind.INTERNAL,
            start_ns=self.root_ns,
            end_ns=self.root_ns + 1,
            attributes=extra,
        )

    def dap_spans(self, calls_kept: int) -> DapSpans:
        """What will take the session's DAP trace."""
        return DapSpans(self.trace_id, self.root_id, self.root_ns, self.common, self.options, calls_kept)

    def begin_lifetime(self, opener: bytes, time_ms: int) -> None:
        """Begins the lifetime span with the entry that made the session, or brought it back."""
        self.lifetime = OpenSpan(
            span_id(self.trace_id, opener),
            names.LIFETIME_NAME,
            SpanKind.INTERNAL,
            time_ms,
            AttributeSet(),
        )

    def heard(self, time_ms: int) -> None:
        """Notes that the log had something of this session at `time_ms`."""
        if time_ms > self.last_ms:
            self.last_ms = time_ms
        self.entries += 1

    # calls

    def open_call(self, call: OpenCall) -> None:
        """A call begins."""
        self.book.open(call)

    def result(self, entry: Entry, result: Result, number: int) -> None:
        """A result entry: it goes to its call, or stands for a call whose own entry was lost."""
        call = self.book.with_result(result)
        if call is None:
            call = self._without_call(entry, result.tool, "result", number, result.key)
        apply_result(call, entry, result, self.options)
        self.book.note_result(call, result, entry.time_ms)

    def answer(self, entry: Entry, tool: str) -> list[Span]:
        """A `tool:response` or `tool:error`: the end of the call that it belongs to."""
        finished: list[Span] = []
        for stale in self.book.stale(tool, entry.time_ms):
            finished += self.finish_call(stale, (stale.result_ms or entry.time_ms), None, answered=False)
        is_error = entry.kind == "tool:error"
        call = self.book.answered(tool, is_error=is_error, closed=self.closed_ms is not None)
        if call is None:
            call = self._without_call(entry, tool, "response", 0, None)
        return finished + self.answer_call(call, entry)

    def answer_call(self, call: OpenCall, entry: Entry) -> list[Span]:
        """The answer that ends this call."""
        finished = self.finish_call(call, entry.time_ms, answer_failure(entry, self.options), answered=True)
        finished += self.settle()
        return finished

    def _without_call(self, entry: Entry, tool: str, role: str, number: int, key: str | None) -> OpenCall:
        span = OpenSpan(
            span_id(self.trace_id, self.occurrences.opener(role, entry)),
            names.call_name(tool),
            SpanKind.SERVER,
            entry.time_ms,
            names.call_attributes(tool, None, self.options),
        )
        span.attributes[names.PARTIAL] = True
        call = OpenCall(tool, number, key, span, logged=False)
        self.book.open(call)
        return call

    def finish_call(self, call: OpenCall, end_ms: int, failure: Failure | None, *, answered: bool) -> list[Span]:
        """The finished span of a call; one without an answer is no proof of failure."""
        if call in self.book.calls:
            self.book.remove(call)
        why = failure or call.failure
        self.totals.calls += 1
        self.totals.failed += why is not None
        if not call.logged and answered:
            call.span.start_ms = end_ms
        if not answered:
            call.span.attributes[names.OUTCOME] = "unanswered"
            self.totals.unanswered += 1
        finished = self._finish(call.span, end_ms, why)
        if self.dap is not None:
            self.dap.call_ended(call, finished[0].end_ns)
        return finished

    # states

    def state_change(self, change: StateChange) -> list[Span]:
        """A state line: the open state span ends, the next begins."""
        finished: list[Span] = []
        self.has_state_lines = True
        held, self.held = self.held, None
        belongs = held is not None and held.fields.get("event") == change.after
        if held is not None and not belongs:
            finished += self.place(held)
        if change.after == "running":
            self.book.set_running()
        else:
            self.book.set_resting()
        begins = change.after not in OPENS_NO_SPAN
        about = held if belongs and begins else None
        finished += self._begin_state(change.after, change.time_ms, change, about)
        if held is not None and belongs and not begins:
            finished += self.place(held)
        return finished

    def hold(self, entry: Entry) -> None:
        """A `debug:state`: what it is about is known with the session's next entry."""
        self.held = entry

    def release(self) -> list[Span]:
        """The held `debug:state` stands alone: the next entry of the session was no state line for it."""
        if self.held is None:
            return []
        entry, self.held = self.held, None
        event = entry.fields.get("event")
        if self.has_state_lines or not isinstance(event, str):
            return self.place(entry)
        begins = event not in OPENS_NO_SPAN
        finished = [] if begins else self.place(entry)
        return finished + self._begin_state(event, entry.time_ms, entry, entry if begins else None)

    def _begin_state(self, state: str, time_ms: int, by: Entry | StateChange, about: Entry | None) -> list[Span]:
        finished = self._end_state(time_ms)
        if self.closed_ms is None and state not in OPENS_NO_SPAN:
            details = AttributeSet()
            if about is not None:
                details.update(names.entry_attributes(about, self.options))
            self.state_name = _shared(state)
            occurrences = self.occurrences
            opener = occurrences.opener("state", by) if isinstance(by, Entry) else occurrences.opener_of_state(by)
            self.state = OpenSpan(
                span_id(self.trace_id, opener),
                intern(f"debuggee {low_cardinality(state)}"),
                SpanKind.INTERNAL,
                time_ms,
                details,
            )
            self.totals.pauses += state == "paused"
        if about is not None:
            finished += self.place(about)
        return finished

    def _end_state(self, time_ms: int) -> list[Span]:
        if self.state is None:
            return []
        state, self.state = self.state, None
        lasted_ms = max(0, time_ms - state.start_ms)
        if self.state_name == "paused":
            self.totals.paused_ms += lasted_ms
        elif self.state_name == "running":
            self.totals.running_ms += lasted_ms
        return self._finish(state, time_ms, None)

    # events

    def place(self, entry: Entry) -> list[Span]:
        """Puts an entry as an event where it happened: on a call in flight, else the state, the lifetime, or alone."""
        event = names.event_of(entry, self.options)
        call = self.book.causing(entry)
        target = call.span if call else self.state or self.lifetime
        if target is None:
            return self._event_alone(event, entry)
        full = target.add(event, self.options.max_events)
        return [self._further_events(target, full)] if full else []

    def _event_alone(self, event: SpanEvent, entry: Entry) -> list[Span]:
        own_id = span_id(self.trace_id, self.occurrences.opener("event", entry))
        span = OpenSpan(own_id, names.EVENT_NAME, SpanKind.INTERNAL, entry.time_ms, AttributeSet(), [event])
        return self._finish(span, entry.time_ms, None)

    def _further_events(self, target: OpenSpan, events: list[SpanEvent]) -> Span:
        return events_span(self.trace_id, target.events_span_id(), self.root_id, self.common, events, self.root_ns)

    # the end

    def close(self, entry: Entry) -> list[Span]:
        """`session:closed`: fixes the end; calls in flight (the close itself always is) stay open."""
        if self.closed_ms is not None or self.lifetime is None:
            return self.place(entry)
        self.closed_ms = entry.time_ms
        finished = self._end_state(entry.time_ms)
        said = names.entry_attributes(entry, self.options)
        self.lifetime.attributes.update(
            {name: value for name, value in said.items() if name.startswith("debug.session.")}
        )
        return finished + self.settle()

    def settle(self) -> list[Span]:
        """The lifetime, once the session is closed and nothing is in flight."""
        if self.closed_ms is None or self.book or self.pending or self.lifetime is None:
            return []
        return self._finish_lifetime("closed")

    def end(self) -> list[Span]:
        """Its server is gone, or silent for too long: all that is open ends at the session's last entry."""
        return self._end_all("not_closed" if self.closed_ms is None else "closed")

    def snapshot(self) -> list[Span]:
        """What is unfinished, as it is now, under ids of this moment: a later replay contradicts none of it."""
        moment = f"{self.last_ms} {self.entries}"
        return [snapshot_of(span, moment) for span in self._end_all(None if self.closed_ms is None else "closed")]

    def _end_all(self, reason: str | None) -> list[Span]:
        finished = self.release()
        for call in list(self.book.calls):
            finished += self.finish_call(call, self.last_ms, None, answered=False)
        return finished + self._end_state(self.last_ms) + self._finish_lifetime(reason)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is open."""
        return self.lifetime is None and not self.book and not self.pending and self.held is None

    def _finish_lifetime(self, reason: str | None) -> list[Span]:
        if self.lifetime is None:
            return []
        lifetime, self.lifetime = self.lifetime, None
        if reason:
            lifetime.attributes[names.END_REASON] = reason
        for name in ("calls", "failed", "unanswered", "pauses", "paused_ms", "running_ms"):
            lifetime.attributes[f"debug.session.{name}"] = getattr(self.totals, name)
        return self._finish(lifetime, self.last_ms if self.closed_ms is None else self.closed_ms, None)

    def _finish(self, span: OpenSpan, end_ms: int, failure: Failure | None) -> list[Span]:
        return span.finish(
            self.trace_id,
            self.root_id,
            self.common,
            not_before_ns=self.root_ns,
            end_ns=end_ms * NS_PER_MS,
            failure=failure,
        )


def _shared(text: str) -> str:
    """The one string for equal texts, where very many sessions hold it; a host's own kind of string stays its own."""
    return intern(text) if type(text) is str else text


def apply_result(call: OpenCall, entry: Entry, result: Result, options: MappingOptions) -> None:
    """Puts on a call what its result entry says."""
    if result.failed and call.failure is None:
        call.failure = names.failure(result.error, options)
    attributes = call.span.attributes
    if "variableCount" in entry.fields:
        attributes.put("debug.variables.count", entry.fields["variableCount"], options.max_value_bytes)
    if not call.logged and options.capture >= names.WITH_ARGUMENTS and "expression" in entry.fields:
        attributes.put("debug.expression", entry.fields["expression"], options.max_value_bytes)
    if options.capture >= names.IN_FULL and names.RESULT not in attributes:
        attributes[names.RESULT] = clip_json(names.result_fields(entry), options.max_value_bytes)


def answer_failure(entry: Entry, options: MappingOptions) -> Failure | None:
    """The failure that an answer itself tells: a `tool:error`, or `success` false."""
    if entry.kind == "tool:error":
        error = entry.fields.get("error")
        return names.failure(error if isinstance(error, str) else entry.text, options)
    if entry.fields.get("success") is False:
        response = entry.fields.get("response")
        said = response.get("error") if isinstance(response, Mapping) else None
        return names.failure(entry.fields.get("error", said), options)
    return None
