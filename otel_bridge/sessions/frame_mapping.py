"""One log together with the frames that passed beside it: sessions and states from the log, calls from the frames.

The log is mapped as it always is, but the spans of calls that come out of it are held back: each is one call of the
frames, whose span has the exact times, ids and outcome, and takes over the events that the log placed on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from otel_bridge.entries.dap import DapMessage
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.frame import Direction, Gap
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
from otel_bridge.sessions.frame_dap import CallersTraces, put_below
from otel_bridge.sessions.frame_join import GivenCalls, LoggedCall, key_of
from otel_bridge.sessions.log_mapping import EndedSession, LogMapping
from otel_bridge.sessions.session import Session
from otel_bridge.sessions.span import Span, SpanKind

LOG_DELAY_S = 1.0
"""How long the log is waited for once a call is answered: its lines come within milliseconds, or, at times, never."""

CANCEL_DELAY_S = 10.0
"""How long an answer is waited for once the client gave a call up: the protocol wants none, some give one."""

_GAP_SLACK_NS = 1_000_000_000


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


@dataclass(slots=True)
class _Unclaimed:
    """A call that the log has told all of, and no frame has shown yet."""

    logged: LoggedCall
    span: Span
    due_s: float | None = None


class FrameMapping(LogMapping):
    """A `LogMapping` that is also told of calls by `hear`. `settle` gives out what has waited long enough."""

    def __init__(self, options: MappingOptions, frames: FrameOptions) -> None:
        super().__init__(options)
        self.frames = frames
        self.calls: list[FrameCall] = []
        """The calls that are not given out yet, in the order of their requests."""
        self.given = GivenCalls()
        self.gaps: list[Gap] = []
        self.tracked: list[LoggedCall] = []
        """The log's calls in flight."""
        self._unclaimed: list[_Unclaimed] = []
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
            if call not in self.calls:
                self.calls.append(call)
                self._join_earlier(call)
            self._count_pending(call.session_id)
        return self._give_ready()

    def miss(self, gap: Gap) -> None:
        """Frames that passed and are not known: what the log says of that time stands for itself."""
        self.gaps = [*self.gaps[-99:], gap]

    def settle(self, now_s: float) -> list[Span]:
        """What has waited long enough; to be called only when the log is read to its end."""
        spans: list[Span] = []
        for call in [call for call in self.calls if call.due_s <= now_s]:
            spans += self._give(call)
        for one in list(self._unclaimed):
            if one.due_s is None:
                one.due_s = now_s + LOG_DELAY_S
            elif one.due_s <= now_s:
                self._unclaimed.remove(one)
                spans += self._alone(one.span)
        return spans

    def due_s(self) -> float:
        """When `settle` has something to do, infinite if never."""
        soonest = min((call.due_s for call in self.calls), default=float("inf"))
        return min([soonest, *(one.due_s or 0.0 for one in self._unclaimed)])

    def over(self) -> list[Span]:
        """The server is gone and the log read to its end: every call and every session ends."""
        spans: list[Span] = []
        for call in list(self.calls):
            spans += self._give(call)
        for one in self._unclaimed:
            spans += self._alone(one.span)
        self._unclaimed.clear()
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
        logged = LoggedCall.of(call, entry)
        self.tracked.append(logged)
        frame = logged.pick(self.calls, all_known=not self.gaps)
        if frame is not None:
            _join(logged, frame)
        else:
            logged.is_given = self.given.began(logged, all_known=not self.gaps)
        return call

    def _join_earlier(self, call: FrameCall) -> None:
        """Joins a call whose entries were read before its request was heard of."""
        for logged in self.tracked:
            if logged.frame is None and not logged.is_given and logged.pick([call], all_known=not self.gaps):
                return _join(logged, call)
        for one in self._unclaimed:
            if one.logged.pick([call], all_known=not self.gaps):
                self._unclaimed.remove(one)
                _join(one.logged, call)
                call.log_answer = answer_in_log(one.span)
                return None
        return None

    def _sift(self, spans: Sequence[Span]) -> list[Span]:
        """What of the log's spans is to be given out: all but those of calls."""
        kept: list[Span] = []
        for span in spans:
            if span.kind is not SpanKind.SERVER:
                kept.append(span)
                continue
            logged = next((one for one in self.tracked if one.call.span.span_id == span.span_id), None)
            if logged is None:
                kept += self._without_call(span)
                continue
            self.tracked.remove(logged)
            if logged.frame is not None:
                logged.frame.log_answer = answer_in_log(span)
                self._discount(span)
                put_below(self.dap.values(), span.span_id, logged.frame)
                if span.parent_id and logged.frame.session_id is None:  # a create without an answer that tells of it
                    logged.frame.session_id = str(span.attributes[names.SESSION_ID])
                    self._count_pending(logged.frame.session_id)
            elif logged.is_given:
                self._discount(span)
            elif self.frames.is_live:
                self._discount(span)
                self._unclaimed.append(_Unclaimed(logged, span))
            else:
                kept.append(span)
        return kept

    def _without_call(self, span: Span) -> list[Span]:
        """An answer whose call the log has lost: it is that of a call which waits for it, or was given out."""
        tool, session_key = str(span.attributes.get(names.TOOL)), key_of(span.attributes.get(names.SESSION_ID))
        self._discount(span)
        for call in self.calls:
            if (call.tool, call.session_key) == (tool, session_key) and call.log_number is None and not call.log_answer:
                call.log_answer = answer_in_log(span)
                return []
        return [] if self.given.ended(tool, session_key, span.end_ns // 1_000_000) else self._alone(span)

    def _alone(self, span: Span) -> list[Span]:
        """A call that only the log knows: it counts where the frames are known to be incomplete."""
        if self.frames.is_live and not self._is_missing(Direction.TO_SERVER, span.start_ns):
            return []
        self._count(span.attributes.get(names.SESSION_ID), answer_in_log(span))
        return [span]

    def _is_missing(self, direction: Direction, time_ns: int) -> bool:
        return any(
            gap.direction is direction and gap.first_ns - _GAP_SLACK_NS <= time_ns <= gap.last_ns + _GAP_SLACK_NS
            for gap in self.gaps
        )

    # sessions

    def _begin(self, session_id: str, root_ms: int, entry: Entry) -> Session:
        session = super()._begin(session_id, root_ms, entry)
        self._count_pending(session_id)
        return session

    def _back(self, session_id: str, ended: EndedSession, item: Entry | StateChange) -> Session:
        session = super()._back(session_id, ended, item)
        session.pending = self._pending(session_id)
        return session

    def _end_sessions(self) -> list[Span]:
        for session in self.sessions.values():
            session.pending = 0  # what is answered later is a span in its trace, and no part of this lifetime
        return super()._end_sessions()

    def _partial(self, entry: Entry) -> list[Span]:
        session_id = entry.fields.get("sessionId")
        maker = next((call for call in self.calls if call.answer and call.answer.created == session_id), None)
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

    def _pending(self, session_id: str | None) -> int:
        return sum(call.session_id == session_id for call in self.calls)

    def count_pending(self) -> None:
        """Tells every session anew how many of its calls are not given out."""
        for session_id, session in self.sessions.items():
            session.pending = self._pending(session_id)

    def _count_pending(self, session_id: str | None) -> None:
        session = self.sessions.get(session_id) if session_id is not None else None
        if session is not None:
            session.pending = self._pending(session_id)

    def _discount(self, span: Span) -> None:
        """A call that the log's mapping counted, and that is counted when it is given out."""
        self._count(span.attributes.get(names.SESSION_ID), answer_in_log(span), -1)

    def _count(self, session_id: object, answer: Answer, number: int = 1) -> None:
        session = self.sessions.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            session.totals.calls += number
            session.totals.failed += number * (answer.failure is not None)
            session.totals.unanswered += number * (answer.outcome == "unanswered")

    # DAP traces

    def take_dap(self, session_id: str, messages: Iterable[DapMessage]) -> list[Span]:
        """As of any log; what is below a call that joined its caller's trace is there too."""
        return self._callers.with_parents(super().take_dap(session_id, messages))

    def place_dap(self) -> list[Span]:
        """As of any log."""
        return self._callers.with_parents(super().place_dap())

    def close_dap(self, session_ids: Iterable[str]) -> list[Span]:
        """As of any log."""
        return self._callers.with_parents(super().close_dap(session_ids))

    # giving out

    def _give_ready(self) -> list[Span]:
        spans: list[Span] = []
        for call in list(self.calls):
            if call.answer is None and call.log_answer is not None and not self._will_be_answered(call.log_answer):
                call.answer = call.log_answer
            if call.answer is not None and (call.log_answer is not None or not self.frames.is_logged):
                spans += self._give(call)
        return spans

    def _will_be_answered(self, answer: Answer) -> bool:
        """Whether the answer that the log tells of must still be seen, or was."""
        return self.frames.is_live and not self._is_missing(Direction.TO_CLIENT, answer.end_ns)

    def _give(self, call: FrameCall) -> list[Span]:
        self.calls.remove(call)
        spans = self._create_by(call)
        session = self.sessions.get(call.session_id) if call.session_id is not None else None
        if call.answer is None:
            call.answer = without_answer(call, session.last_ms if session else 0)
        elif call.cancelled_ns is not None and not call.answer.outcome:
            call.answer = replace(call.answer, outcome="cancelled")
        self._withdraw(call, session)
        if self.frames.join_caller:
            self._callers.add(call)
        home = self._home(call.session_id)
        if home is None:
            call.attributes.put(names.SESSION_ID, call.session_id, self.options.max_value_bytes)
        spans += call.spans(home, join_caller=self.frames.join_caller)
        self._count(call.session_id, call.answer)
        self.given.add(call)
        if session is not None:
            if call.log_answer is None:  # else the log has told when it heard of the session last
                session.last_ms = max(session.last_ms, call.answer.end_ns // 1_000_000)
            session.pending = self._pending(call.session_id)
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

    def _withdraw(self, call: FrameCall, session: Session | None) -> None:
        """Takes a call out of the log's books: its answer is not to be waited for there."""
        logged = next((one for one in self.tracked if one.frame is call), None)
        if logged is None:
            return
        self.tracked.remove(logged)
        self.creates.waiting = [create for create in self.creates.waiting if create.call is not logged.call]
        for book in [session.book for session in self.sessions.values()] + list(self.loose.books.values()):
            if any(one is logged.call for one in book.calls):
                book.remove(logged.call)
        if session is not None and session.dap is not None and call.answer is not None:
            session.dap.call_ended(logged.call, call.answer.end_ns)
            put_below([session.dap], logged.call.span.span_id, call)
        self.loose.books = {key: book for key, book in self.loose.books.items() if book}


def _join(logged: LoggedCall, call: FrameCall) -> None:
    logged.frame = call
    call.log_number = logged.call.number
    call.log_span = logged.call.span
    # The root of a session stands where its create began.
    logged.call.span.start_ms = call.start_ns // 1_000_000
