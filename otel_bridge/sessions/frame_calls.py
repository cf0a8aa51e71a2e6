"""The calls of the frames that are not given out yet, and which calls of the log they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.frame import Direction, Gap
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.calls import OpenCall
from otel_bridge.sessions.frame_call import FrameCall, answer_in_log
from otel_bridge.sessions.frame_join import GivenCalls, LoggedCall, key_of
from otel_bridge.sessions.span import Span

_GAP_SLACK_NS: Final = 1_000_000_000
_MOST_GAPS: Final = 100


@dataclass(slots=True)
class Unclaimed:
    """A call that the log has told all of, and no frame has shown yet; given up at `due_s` (a monotonic clock's)."""

    logged: LoggedCall
    span: Span
    due_s: float | None = None


@dataclass(slots=True)
class FrameCalls:
    """What is known of the connection's calls, from frames and log together. It gives nothing out itself."""

    waiting: list[FrameCall] = field(default_factory=list)
    """In the order of their requests."""
    last_order: bytes = b""
    """The place of the latest request that was heard of."""
    tracked: list[LoggedCall] = field(default_factory=list)
    """The log's calls in flight."""
    unclaimed: list[Unclaimed] = field(default_factory=list)
    given: GivenCalls = field(default_factory=GivenCalls)
    gaps: list[Gap] = field(default_factory=list)

    def add(self, call: FrameCall) -> None:
        """A call begins; maybe the log told of it before."""
        self.waiting.append(call)
        self.last_order = max(self.last_order, call.order)
        for logged in self.tracked:
            if logged.frame is None and not logged.is_given and logged.pick([call], all_known=not self.gaps):
                return _join(logged, call)
        for one in self.unclaimed:
            if one.logged.pick([call], all_known=not self.gaps):
                self.unclaimed.remove(one)
                _join(one.logged, call)
                call.log_answer = answer_in_log(one.span)
                return None
        return None

    def recall(self, call: FrameCall) -> None:
        """A call as the run that is over knew it last. What that gave out, and saved so, does not come back."""
        known = next((one for one in self.waiting if one.opener == call.opener), None)
        if known is not None:
            known.answer, known.cancelled_ns = call.answer, call.cancelled_ns
        elif call.order > self.last_order:
            self.waiting.append(call)
            known = call
        if known is not None and known.answer is not None:
            known.session_id = known.answer.created or known.session_id

    def miss(self, gap: Gap) -> None:
        """Frames passed that are not known."""
        self.gaps = [*self.gaps[-_MOST_GAPS + 1 :], gap]

    def may_lack(self, direction: Direction, time_ns: int) -> bool:
        """Whether a frame that passed at that time may be one of those that are not known."""
        return any(
            gap.direction is direction and gap.first_ns - _GAP_SLACK_NS <= time_ns <= gap.last_ns + _GAP_SLACK_NS
            for gap in self.gaps
        )

    def pending(self, session_id: str, closed_ms: int | None) -> int:
        """How many calls of a session are not given out, of those that began before it was closed."""
        calls = [call for call in self.waiting if call.session_id == session_id]
        return sum(closed_ms is None or call.start_ns // 1_000_000 <= closed_ms for call in calls)

    def give(self, call: FrameCall) -> LoggedCall | None:
        """A call is given out; gives the call of the log that it is, if that is still in flight there."""
        self.waiting.remove(call)
        self.given.add(call)
        logged = next((one for one in self.tracked if one.frame is call), None)
        if logged is not None:
            self.tracked.remove(logged)
        return logged

    # what the log says

    def logged(self, call: OpenCall, entry: Entry) -> None:
        """A `tool:call` of the log (redacted), and the call that the log's mapping made of it."""
        logged = LoggedCall.of(call, entry)
        self.tracked.append(logged)
        frame = logged.pick(self.waiting, all_known=not self.gaps)
        if frame is not None:
            _join(logged, frame)
        else:
            logged.is_given = self.given.began(logged, all_known=not self.gaps)

    def ended(self, span: Span) -> LoggedCall | None:
        """The call of the log whose span this is; it is not in flight there any more."""
        logged = next((one for one in self.tracked if one.call.span.span_id == span.span_id), None)
        if logged is not None:
            self.tracked.remove(logged)
        return logged

    def has_answer_of(self, span: Span) -> bool:
        """Whether an answer whose call the log has lost is that of a call that waits for it, or was given out."""
        tool, session_key = str(span.attributes.get(names.TOOL)), key_of(span.attributes.get(names.SESSION_ID))
        for call in self.waiting:
            if (call.tool, call.session_key) == (tool, session_key) and call.log_number is None and not call.log_answer:
                call.log_answer = answer_in_log(span)
                return True
        return self.given.ended(tool, session_key, span.end_ns // 1_000_000)

    def overdue(self, now_s: float, delay_s: float) -> list[Span]:
        """The log's spans of calls that no frame has shown within `delay_s`; from then on they are forgotten."""
        for one in self.unclaimed:
            one.due_s = now_s + delay_s if one.due_s is None else one.due_s
        overdue = [one for one in self.unclaimed if one.due_s is not None and one.due_s <= now_s]
        self.unclaimed = [one for one in self.unclaimed if one not in overdue]
        return [one.span for one in overdue]

    def due_s(self) -> float:
        """When something has waited long enough, infinite if nothing waits."""
        soonest = min((call.due_s for call in self.waiting), default=float("inf"))
        return min([soonest, *[one.due_s or 0.0 for one in self.unclaimed]])


def _join(logged: LoggedCall, call: FrameCall) -> None:
    logged.frame = call
    call.log_number = logged.call.number
    call.log_span = logged.call.span
    # The root of a session stands where its create began.
    logged.call.span.start_ms = call.start_ns // 1_000_000
