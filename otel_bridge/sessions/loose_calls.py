"""Calls that belong to no session: each becomes a trace of one span."""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, Failure, MappingOptions
from otel_bridge.sessions.calls import CallBook, OpenCall
from otel_bridge.sessions.evidence import Result, call_key
from otel_bridge.sessions.ids import Occurrences, canonical_json, span_id, trace_id_of_entry
from otel_bridge.sessions.open_span import SHORTEST_NS, OpenSpan, snapshot_of
from otel_bridge.sessions.session import answer_failure, apply_result
from otel_bridge.sessions.span import Span, SpanKind


def opened_call(entry: Entry, number: int, options: MappingOptions, occurrences: Occurrences) -> OpenCall:
    """The call that a `tool:call` begins; its ids follow once its trace is known."""
    tool = entry.fields.get("tool")
    request = entry.fields.get("request")
    name = tool if isinstance(tool, str) else "_other"
    span = OpenSpan(
        0,
        names.call_name(tool),
        SpanKind.SERVER,
        entry.time_ms,
        names.call_attributes(tool, request, options),
    )
    opener = occurrences.opener("call", entry)
    return OpenCall(name, number, call_key(name, request), span, opener=opener)


def join(call: OpenCall, trace_id: int) -> None:
    """Puts a call into a session's trace."""
    if call.opener is not None:
        call.span.span_id = span_id(trace_id, call.opener)
        call.opener = None


@dataclass(slots=True)
class LooseCalls:
    """The calls in flight without a session, by the session id they gave (of any type; none is one too)."""

    options: MappingOptions
    occurrences: Occurrences
    books: dict[str, CallBook] = field(default_factory=dict)

    def open(self, entry: Entry, call: OpenCall) -> None:
        """A call of an unknown session id begins."""
        session_id = entry.fields.get("sessionId")
        if isinstance(session_id, str):
            call.span.attributes.put(names.SESSION_ID, session_id, self.options.max_value_bytes)
        self.books.setdefault(_key(entry), CallBook()).open(call)

    def result(self, entry: Entry, result: Result) -> bool:
        """A result entry goes to the call in flight with the same session id; False when there is none."""
        book = self.books.get(_key(entry))
        call = book.with_result(result) if book else None
        if book is None or call is None:
            return False
        apply_result(call, entry, result, self.options)
        book.note_result(call, result, entry.time_ms)
        return True

    def event(self, entry: Entry) -> bool:
        """Any other entry becomes an event of the call in flight with the same session id; False when there is none."""
        book = self.books.get(_key(entry))
        call = book.causing(entry) if book else None
        if call is None:
            return False
        call.span.add(names.event_of(entry, self.options), self.options.max_events)
        return True

    def answer(self, entry: Entry, tool: str) -> list[Span]:
        """An answer ends its call; an empty list when none was in flight."""
        key = _key(entry)
        book = self.books.get(key)
        call = book.answered(tool, is_error=entry.kind == "tool:error", closed=False) if book else None
        if book is None or call is None:
            return []
        book.remove(call)
        if not book:
            del self.books[key]
        return finished(call, entry.time_ms * NS_PER_MS, answer_failure(entry, self.options), answered=True)

    def alone(self, entry: Entry, tool: str | None) -> list[Span]:
        """An answer (of `tool`) or another entry (None) that belongs to nothing: a 1 µs span of its own."""
        if tool is None:
            event = names.event_of(entry, self.options)
            span = OpenSpan(0, names.EVENT_NAME, SpanKind.INTERNAL, entry.time_ms, AttributeSet(), [event])
        else:
            attributes = names.call_attributes(tool, None, self.options)
            span = OpenSpan(0, names.call_name(tool), SpanKind.SERVER, entry.time_ms, attributes)
        span.attributes[names.PARTIAL] = True
        session_id = entry.fields.get("sessionId")
        if isinstance(session_id, str):
            span.attributes.put(names.SESSION_ID, session_id, self.options.max_value_bytes)
        call = OpenCall(tool or "", 0, None, span, opener=self.occurrences.opener("alone", entry))
        failure = answer_failure(entry, self.options) if tool is not None else None
        return finished(call, entry.time_ms * NS_PER_MS, failure, answered=True)

    def overdue(self, before_ms: int | None) -> list[Span]:
        """Ends without an answer what began at `before_ms` or before; None: all."""
        ended: list[Span] = []
        for key, book in list(self.books.items()):
            for call in [call for call in book.calls if before_ms is None or call.span.start_ms <= before_ms]:
                book.remove(call)
                ended += unanswered(call)
            if not book:
                del self.books[key]
        return ended

    def snapshot(self, moment: str) -> list[Span]:
        """What is in flight, as it is now, under ids of this moment."""
        spans = [span for book in self.books.values() for call in book.calls for span in unanswered(call)]
        return [snapshot_of(span, moment) for span in spans]


def unanswered(call: OpenCall) -> list[Span]:
    """A call whose answer never came, as a span of 1 µs."""
    call.span.attributes[names.OUTCOME] = "unanswered"
    return finished(call, call.span.start_ms * NS_PER_MS + SHORTEST_NS, None, answered=False)


def finished(call: OpenCall, end_ns: int, failure: Failure | None, *, answered: bool) -> list[Span]:
    """The one-span trace of a call without a session."""
    opener = call.opener or b""
    trace_id = trace_id_of_entry(opener)
    call.span.span_id = span_id(trace_id, opener)
    if not call.logged and answered:
        call.span.start_ms = end_ns // 1_000_000
    return call.span.finish(trace_id, 0, {}, not_before_ns=0, end_ns=end_ns, failure=failure or call.failure)


def _key(entry: Entry) -> str:
    return canonical_json(entry.fields.get("sessionId")).decode()
