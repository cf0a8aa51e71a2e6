"""One log together with the frames that passed beside it: sessions and states from the log, calls from the frames.

The log is mapped as it always is, but the spans of calls that come out of it are held back: each is one call of the
frames, whose span has the exact times, ids and outcome, and takes over the events that the log placed on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from otel_bridge.entries.dap import DapMessage
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.frame import Direction
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.calls import OpenCall
from otel_bridge.sessions.frame_call import (
    Answer,
    FrameCall,
    Home,
    answer_in_log,
    closed_by,
    created_by,
    without_answer,
)
from otel_bridge.sessions.frame_calls import FrameCalls, Unclaimed
from otel_bridge.sessions.frame_dap import CallersTraces, put_below
from otel_bridge.sessions.log_mapping import EndedSession, LogMapping
from otel_bridge.sessions.session import Session
from otel_bridge.sessions.span import Span, SpanKind

LOG_DELAY_S: Final = 1.0
"""How long the log is waited for once a call is answered: its lines come within milliseconds, or, at times, never."""

CANCEL_DELAY_S: Final = 10.0
"""How long an answer is waited for once the client gave a call up: the protocol wants none, some give one."""


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """What a mapping with frames may be told besides.

    `is_logged`: there is a log to wait for. `is_live`: frames come; else the run that saw them is over, and what it did
    not give out is taken from the log alone. Entries before `from_ms` and from `until_ms` on are another run's.
    """

    is_logged: bool = True
    is_live: bool = True
    join_caller: bool = False
    from_ms: int = 0
    until_ms: int = 1 << 60


class FrameMapping(LogMapping):
    """A `LogMapping` that is also told of calls by `hear`. `settle` gives out what has waited long enough."""

    def __init__(self, options: MappingOptions, frames: FrameOptions) -> None:
        super().__init__(options)
        self.frames = frames
        self.calls = FrameCalls()
        self._callers = CallersTraces()

    # what the frames say

    def hear(self, calls: Iterable[FrameCall], now_s: float) -> list[Span]:
        """Calls that began, were answered or cancelled, in order; the spans which that makes final."""
        for call in calls:
            if call.answer is not None:
                call.due_s = now_s + (LOG_DELAY_S if self.frames.is_logged else 0.0)
                call.session_id = call.answer.created or call.session_id
            elif call.cancelled_ns is not None:
                call.due_s = now_s + CANCEL_DELAY_S
            if call not in self.calls.waiting:
                self.calls.add(call)
            self._count_pending(call.session_id)
        return self._give_ready()

    def recall(self, calls: Iterable[FrameCall]) -> None:
        """Calls as the run that is over knew them last, whether they are among what it saved or not."""
        for call in calls:
            self.calls.recall(call)
        self.count_pending()

    def settle(self, now_s: float) -> list[Span]:
        """What has waited long enough; to be called only when the log is read to its end."""
        spans = [span for call in self.calls.waiting[:] if call.due_s <= now_s for span in self._give(call)]
        return spans + [kept for span in self.calls.overdue(now_s, LOG_DELAY_S) for kept in self._alone(span)]

    def over(self) -> list[Span]:
        """The server is gone and the log read to its end: every call and every session ends."""
        spans = [span for call in self.calls.waiting[:] for span in self._give(call)]
        spans += [kept for one in self.calls.unclaimed for kept in self._alone(one.span)]
        self.calls.unclaimed.clear()
        return [*spans, *self._sift(self.server_gone())]

    # what the log says

    def take(self, items: Iterable[Entry | StateChange]) -> list[Span]:
        """The spans that these entries made final, in order."""
        spans: list[Span] = []
        for item in items:
            if self.frames.from_ms <= item.time_ms < self.frames.until_ms:
                spans += self._sift(super().take((item,)))
                spans += self._give_ready()
        return spans

    def _opened(self, entry: Entry) -> OpenCall:
        call = super()._opened(entry)
        self.calls.logged(call, entry)
        return call

    def _sift(self, spans: Sequence[Span]) -> list[Span]:
        """What of the log's spans is to be given out: all but those of calls."""
        kept: list[Span] = []
        for span in spans:
            kept += self._of_call(span) if span.kind is SpanKind.SERVER else [span]
        return kept

    def _of_call(self, span: Span) -> list[Span]:
        logged = self.calls.ended(span)
        self._count(span.attributes.get(names.SESSION_ID), answer_in_log(span), -1)  # it counts when it is given out
        if logged is None:
            return [] if self.calls.has_answer_of(span) else self._alone(span)
        if logged.frame is not None:
            self._note_end(logged.frame, span)
            return []
        if logged.is_given:
            return []
        if self.frames.is_live:
            self.calls.unclaimed.append(Unclaimed(logged, span))
            return []
        return self._alone(span)

    def _note_end(self, call: FrameCall, span: Span) -> None:
        """The log has told all of a call: how it ended there is in `span`."""
        call.log_answer = answer_in_log(span)
        put_below(self.dap.values(), span.span_id, call)
        if span.parent_id and call.session_id is None:  # a create without an answer that tells of it
            call.session_id = str(span.attributes[names.SESSION_ID])
            self._count_pending(call.session_id)

    def _alone(self, span: Span) -> list[Span]:
        """A call that only the log knows: it counts where the frames are known to be incomplete."""
        if self.frames.is_live and not self.calls.may_lack(Direction.TO_SERVER, span.start_ns):
            return []
        self._count(span.attributes.get(names.SESSION_ID), answer_in_log(span))
        return [span]

    # sessions

    def _begin(self, session_id: str, root_ms: int, entry: Entry) -> Session:
        session = super()._begin(session_id, root_ms, entry)
        self._count_pending(session_id)
        return session

    def _back(self, session_id: str, ended: EndedSession, item: Entry | StateChange) -> Session:
        session = super()._back(session_id, ended, item)
        session.pending = self.calls.pending(session_id, None)
        return session

    def _end_sessions(self) -> list[Span]:
        for session in self.sessions.values():
            session.pending = 0  # what is answered later is a span in its trace, and no part of this lifetime
        return super()._end_sessions()

    def _partial(self, entry: Entry) -> list[Span]:
        session_id = entry.fields.get("sessionId")
        maker = next((call for call in self.calls.waiting if call.answer and call.answer.created == session_id), None)
        if maker is None or not isinstance(session_id, str):
            return super()._partial(entry)
        return [*self._create_by(maker), *self._of_session(self.sessions[session_id], entry)]

    def _create_by(self, call: FrameCall) -> list[Span]:
        """The session that a call made, where the log has not told of it."""
        created = call.answer.created if call.answer else None
        if created is None or created in self.sessions or created in self.ended:
            return []
        return self._created(created_by(call, created), created)

    def _close_by(self, call: FrameCall, session: Session) -> list[Span]:
        """The end of a session that a call closed, where the log has not told of it."""
        entry = closed_by(call)
        return session.close(entry) if entry is not None and session.closed_ms is None else []

    def count_pending(self) -> None:
        """Tells every session anew how many of its calls are not given out."""
        for session_id in self.sessions:
            self._count_pending(session_id)

    def _count_pending(self, session_id: str | None) -> None:
        session = self.sessions.get(session_id) if session_id is not None else None
        if session is not None:
            session.pending = self.calls.pending(session.session_id, session.closed_ms)

    def _count(self, session_id: object, answer: Answer, number: int = 1) -> None:
        """Counts a call, or with -1 takes one back that the log's mapping counted."""
        session = self.sessions.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            session.totals.calls += number
            session.totals.failed += number * (answer.failure is not None)
            session.totals.unanswered += number * (answer.outcome == "unanswered")

    # DAP traces

    def take_dap(self, session_id: str, messages: Iterable[DapMessage], run: str = "") -> list[Span]:
        """As of any log; what is below a call that joined its caller's trace is there too."""
        return self._callers.with_parents(super().take_dap(session_id, messages, run))

    def place_dap(self) -> list[Span]:
        """As of any log."""
        return self._callers.with_parents(super().place_dap())

    def close_dap(self, session_ids: Iterable[str]) -> list[Span]:
        """As of any log."""
        return self._callers.with_parents(super().close_dap(session_ids))

    # giving out

    def _give_ready(self) -> list[Span]:
        spans: list[Span] = []
        for call in self.calls.waiting[:]:
            if call.answer is None and call.log_answer is not None and not self._will_be_answered(call.log_answer):
                call.answer = call.log_answer
            if call.answer is not None and (call.log_answer is not None or not self.frames.is_logged):
                spans += self._give(call)
        return spans

    def _will_be_answered(self, answer: Answer) -> bool:
        """Whether the answer that the log tells of must still be seen, or was."""
        return self.frames.is_live and not self.calls.may_lack(Direction.TO_CLIENT, answer.end_ns)

    def _give(self, call: FrameCall) -> list[Span]:
        spans = self._create_by(call)
        session = self.sessions.get(call.session_id) if call.session_id is not None else None
        if call.answer is None:
            call.answer = without_answer(call, session.last_ms if session else 0)
        elif call.cancelled_ns is not None and not call.answer.outcome:
            call.answer = replace(call.answer, outcome="cancelled")
        logged = self.calls.give(call)
        if logged is not None:
            self._withdraw(logged.call, call, call.answer, session)
        if self.frames.join_caller:
            self._callers.add(call)
        home = self._home(call.session_id)
        if home is None:
            call.attributes.put(names.SESSION_ID, call.session_id, self.options.max_value_bytes)
        spans += call.spans(home, join_caller=self.frames.join_caller)
        self._count(call.session_id, call.answer)
        if session is not None:
            if call.log_answer is None:  # else the log has told when it heard of the session last
                session.last_ms = max(session.last_ms, call.answer.end_ns // 1_000_000)
            self._count_pending(call.session_id)
            self.touched.add(session.session_id)
            spans += [*self._close_by(call, session), *session.settle()]
            self._bury(session)
        return spans

    def _home(self, session_id: str | None) -> Home | None:
        session = self.sessions.get(session_id) if session_id is not None else None
        ended = self.ended.get(session_id) if session_id is not None else None
        if session is None and ended is not None and session_id is not None:
            session = Session(session_id, self.options, self.occurrences, ended.root_ms, 0, ended.name, ended.language)
        return Home(session.trace_id, session.root_ns, session.common) if session else None

    def _withdraw(self, logged: OpenCall, call: FrameCall, answer: Answer, session: Session | None) -> None:
        """Takes a call out of the log's books: its answer is not to be waited for there."""
        self.creates.waiting = [create for create in self.creates.waiting if create.call is not logged]
        for book in [session.book for session in self.sessions.values()] + list(self.loose.books.values()):
            if any(one is logged for one in book.calls):
                book.remove(logged)
        self.loose.books = {key: book for key, book in self.loose.books.items() if book}
        if session is not None and session.dap is not None:
            session.dap.call_ended(logged, answer.end_ns)
            put_below([session.dap], logged.span.span_id, call)
