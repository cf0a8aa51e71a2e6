"""All sessions of one log: takes its entries in order, gives back finished spans.

Pure: no I/O and no clock. What time it is at the end of the input is an argument, so that the same lines always give
the same spans. One log is one rotation chain; nothing is ever matched across logs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from otel_bridge.entries.dap import DapMessage
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.calls import CREATE, OpenCall
from otel_bridge.sessions.creates import PendingCreates
from otel_bridge.sessions.dap_spans import DapSpans
from otel_bridge.sessions.evidence import result_of
from otel_bridge.sessions.ids import Occurrences
from otel_bridge.sessions.loose_calls import LooseCalls, finished, join, opened_call, unanswered
from otel_bridge.sessions.open_span import snapshot_of
from otel_bridge.sessions.redaction import redact_entry
from otel_bridge.sessions.session import Session, answer_failure
from otel_bridge.sessions.span import Span

MAX_ENDED: Final = 100_000
"""Ended sessions of which a log remembers root time, name and language, so that a root is made once."""

_NEVER_MS: Final = 1 << 60

UNKNOWN_SESSION: Final = "Unknown Session"
"""The name that the server logs for a session id it does not know, or knows no longer."""


@dataclass(frozen=True, slots=True)
class EndedSession:
    """What is kept of a session that is over."""

    root_ms: int
    name: str | None
    language: str | None
    closed: bool


class LogMapping:
    """Maps one log. `take` what it says; then `end`, when no more comes, or `server_gone`, when it is known to be."""

    def __init__(self, options: MappingOptions) -> None:
        self.options = options
        self.sessions: dict[str, Session] = {}
        self.ended: OrderedDict[str, EndedSession] = OrderedDict()
        self.occurrences = Occurrences()
        self.creates = PendingCreates()
        self.loose = LooseCalls(options, self.occurrences)
        self.latest_ms = 0
        self.number = 0
        self.partial_roots = 0
        """How many sessions were joined in their middle: their root differs from that of the whole log."""
        self.touched: set[str] = set()
        """Sessions that changed since whoever saves this mapping last cleared the set."""
        self.dap_calls_kept = 0
        """Above 0 where sessions may have DAP traces: so many of a session's ended calls are remembered till then."""
        self.dap: dict[str, DapSpans] = {}
        self._overdue_at_ms = 0

    def take(self, items: Iterable[Entry | StateChange]) -> list[Span]:
        """The spans that these entries made final, in order."""
        spans: list[Span] = []
        idle_timeout_ms = self.options.idle_timeout_ms
        for item in items:
            time_ms = item.time_ms
            if time_ms >= self._overdue_at_ms or time_ms - self.latest_ms >= idle_timeout_ms:
                spans += self._silence_before(time_ms)
            elif time_ms > self.latest_ms:
                self.latest_ms = time_ms
            spans += self._state_change(item) if isinstance(item, StateChange) else self._entry(redact_entry(item))
        return spans

    @property
    def has_open(self) -> bool:
        """Whether anything would end if the log's server were gone."""
        return bool(self.sessions or self.loose.books or self.creates.waiting)

    def server_gone(self) -> list[Span]:
        """The process that wrote this log has ended, or the log was silent for the idle timeout: every session ends."""
        return [*self._end_sessions(), *self._end_loose(None)]

    def end(self, now_ms: int) -> list[Span]:
        """No more will be read. What may still live at `now_ms` is given as a snapshot, the rest ends."""
        if now_ms - self.latest_ms >= self.options.idle_timeout_ms:
            return self.server_gone()
        moment = str(self.latest_ms)
        spans = [span for session in self.sessions.values() for span in session.snapshot()]
        spans += self.loose.snapshot(moment)
        for call in self.creates.take_unmade():
            spans += [snapshot_of(span, moment) for span in unanswered(call)]
        return spans

    def _end_sessions(self) -> list[Span]:
        spans: list[Span] = []
        for session in list(self.sessions.values()):
            spans += session.end()
            self._bury(session)
        return spans

    def _end_loose(self, before_ms: int | None) -> list[Span]:
        calls = self.creates.take_unmade(before_ms)
        return [*self.loose.overdue(before_ms), *[span for call in calls for span in unanswered(call)]]

    def _silence_before(self, time_ms: int) -> list[Span]:
        spans: list[Span] = []
        if self.latest_ms and time_ms - self.latest_ms >= self.options.idle_timeout_ms:
            spans = self.server_gone()
        elif time_ms >= self._overdue_at_ms:
            spans = self._end_loose(time_ms - self.options.idle_timeout_ms)
            self._overdue_at_ms = self._first_start_ms() + self.options.idle_timeout_ms
        self.latest_ms = max(self.latest_ms, time_ms)
        return spans

    def _first_start_ms(self) -> int:
        """When the oldest call in flight without a session began; it is given up once that is too long ago."""
        starts = [call.span.start_ms for book in self.loose.books.values() for call in book.calls]
        starts += [create.call.span.start_ms for create in self.creates.waiting if create.session_id is None]
        return min(starts, default=_NEVER_MS)

    def _loose_call(self, entry: Entry) -> OpenCall:
        self._overdue_at_ms = min(self._overdue_at_ms, entry.time_ms + self.options.idle_timeout_ms)
        return self._opened(entry)

    def _opened(self, entry: Entry) -> OpenCall:
        return opened_call(entry, self.number, self.options, self.occurrences)

    # one entry

    def _state_change(self, change: StateChange) -> list[Span]:
        session = self._known(change.session_id, change)
        if session is None:
            return []  # unstructured, and of a session that no entry has told of
        session.heard(change.time_ms)
        return session.state_change(change)

    def _entry(self, entry: Entry) -> list[Span]:
        kind, fields = entry.kind, entry.fields
        session_id = fields.get("sessionId")
        self.number += 1
        if kind == "session:created" and isinstance(session_id, str):
            return self._created(entry, session_id)
        tool = fields.get("tool")
        if tool == CREATE and session_id is None and kind.startswith("tool:"):
            return self._create(entry)
        known = self._known(session_id, entry)
        if known is not None:
            return self._of_session(known, entry)
        return self._of_no_session(entry)

    def _of_session(self, session: Session, entry: Entry) -> list[Span]:
        session.heard(entry.time_ms)
        spans = session.release()
        tool = entry.fields.get("tool")
        if entry.kind == "tool:call":
            call = self._opened(entry)
            join(call, session.trace_id)
            session.open_call(call)
        elif entry.kind in ("tool:response", "tool:error"):
            spans += session.answer(entry, tool if isinstance(tool, str) else "_other")
        elif entry.kind == "session:closed":
            spans += session.close(entry)
        elif entry.kind == "debug:state":
            session.hold(entry)
        elif (result := result_of(entry)) is not None:
            session.result(entry, result, self.number)
        else:
            spans += session.place(entry)
        self._bury(session)
        return spans

    def _of_no_session(self, entry: Entry) -> list[Span]:
        session_id, name = entry.fields.get("sessionId"), entry.fields.get("sessionName")
        tool = entry.fields.get("tool")
        is_named = isinstance(session_id, str) and isinstance(name, str) and name not in ("", UNKNOWN_SESSION)
        if entry.kind == "tool:call":
            if is_named:
                return self._partial(entry)
            self.loose.open(entry, self._loose_call(entry))
            return []
        if entry.kind in ("tool:response", "tool:error"):
            name_of_tool = tool if isinstance(tool, str) else "_other"
            return (
                self.loose.answer(entry, name_of_tool)
                or (self._partial(entry) if is_named else [])
                or self.loose.alone(entry, name_of_tool)
            )
        result = result_of(entry)
        if self.loose.result(entry, result) if result else self.loose.event(entry):
            return []
        return self._partial(entry) if isinstance(session_id, str) and session_id else self.loose.alone(entry, None)

    # sessions begin

    def _create(self, entry: Entry) -> list[Span]:
        if entry.kind == "tool:call":
            self.creates.open(entry, self._loose_call(entry))
            return []
        create = self.creates.answered(is_error=entry.kind == "tool:error")
        if create is None:
            return self.loose.alone(entry, CREATE)
        session = self._known(create.session_id, entry)
        if session is None:
            failure = answer_failure(entry, self.options)
            return finished(create.call, entry.time_ms * NS_PER_MS, failure, answered=True)
        session.heard(entry.time_ms)
        spans = [*session.release(), *session.answer_call(create.call, entry)]
        self._bury(session)
        return spans

    def _created(self, entry: Entry, session_id: str) -> list[Span]:
        known = self._known(session_id, entry)
        if known is not None:
            known.heard(entry.time_ms)
            return [*known.release(), *known.place(entry)]
        call = self.creates.created(entry, session_id)
        root_ms = min(call.span.start_ms, entry.time_ms) if call else entry.time_ms
        session = self._begin(session_id, root_ms, entry)
        root = session.root(entry.fields.get("executablePath"), partial=False)
        if call:
            join(call, session.trace_id)
            session.open_call(call)
        return [root]

    def _partial(self, entry: Entry) -> list[Span]:
        session_id = entry.fields.get("sessionId")
        if not isinstance(session_id, str):
            return []
        session = self._begin(session_id, entry.time_ms, entry)
        self.partial_roots += 1
        return [session.root(None, partial=True), *self._of_session(session, entry)]

    def _begin(self, session_id: str, root_ms: int, entry: Entry) -> Session:
        name, language = entry.fields.get("sessionName"), entry.fields.get("language")
        session = Session(
            session_id,
            self.options,
            self.occurrences,
            root_ms,
            entry.time_ms,
            name if isinstance(name, str) and name != UNKNOWN_SESSION else None,
            language if isinstance(language, str) else None,
        )
        session.begin_lifetime(self.occurrences.opener("lifetime", entry), root_ms)
        self.sessions[session_id] = session
        self.touched.add(session_id)
        self._expect_dap(session)
        return session

    # sessions end, and come back

    def _known(self, session_id: object, item: Entry | StateChange) -> Session | None:
        if not isinstance(session_id, str):
            return None
        session = self.sessions.get(session_id)
        if session is None:
            ended = self.ended.pop(session_id, None)
            if ended is None:
                return None
            session = self._back(session_id, ended, item)
        self.touched.add(session_id)
        return session

    def _back(self, session_id: str, ended: EndedSession, item: Entry | StateChange) -> Session:
        session = Session(
            session_id, self.options, self.occurrences, ended.root_ms, item.time_ms, ended.name, ended.language
        )
        if ended.closed:
            session.closed_ms = item.time_ms
        elif isinstance(item, StateChange):
            session.begin_lifetime(self.occurrences.opener_of_state(item, "lifetime"), item.time_ms)
        else:
            session.begin_lifetime(self.occurrences.opener("lifetime", item), item.time_ms)
        self.sessions[session_id] = session
        self._expect_dap(session)
        return session

    # DAP traces

    def _expect_dap(self, session: Session) -> None:
        if self.dap_calls_kept or session.session_id in self.dap:
            session.dap = self.dap.setdefault(session.session_id, session.dap_spans(self.dap_calls_kept))

    def take_dap(self, session_id: str, messages: Iterable[DapMessage], run: str = "") -> list[Span]:
        """The spans that messages of one run of a session's DAP trace made final; of a session that this log knows."""
        dap = self.dap.get(session_id)
        if dap is None:
            return []
        spans = [span for message in messages for span in dap.take(message, run)]
        return spans + self._place_dap(session_id, dap)

    def place_dap(self) -> list[Span]:
        """The DAP spans that the log has passed by now."""
        waiting = [(session_id, dap) for session_id, dap in self.dap.items() if dap.has_waiting]
        return [span for session_id, dap in waiting for span in self._place_dap(session_id, dap)]

    def close_dap(self, session_ids: Iterable[str]) -> list[Span]:
        """No more will be read of these sessions' DAP traces."""
        traces = {session_id: self.dap.pop(session_id) for session_id in session_ids if session_id in self.dap}
        self.touched |= traces.keys()
        return [span for dap in traces.values() for span in dap.close()]

    def _place_dap(self, session_id: str, dap: DapSpans) -> list[Span]:
        self.touched.add(session_id)
        session = self.sessions.get(session_id)
        if session is None:
            return dap.place([], self.latest_ms, over=True)
        return dap.place(session.book.calls, self.latest_ms, over=False)

    def _bury(self, session: Session) -> None:
        if session.is_over:
            session_id = session.session_id
            del self.sessions[session_id]
            self.touched.add(session_id)
            self.creates.forget_session(session_id)
            closed = session.closed_ms is not None
            self.ended[session_id] = EndedSession(session.root_ms, session.name, session.language, closed)
            if len(self.ended) > MAX_ENDED:
                self.ended.popitem(last=False)
