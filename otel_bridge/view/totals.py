"""What a session comes to: its name, its times, its calls and how it ended, counted from its spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from otel_bridge.sessions.attributes import (
    END_REASON,
    LIFETIME_NAME,
    OUTCOME,
    PARTIAL,
    ROOT_NAME,
    SESSION_LANGUAGE,
    SESSION_NAME,
    SNAPSHOT,
)
from otel_bridge.sessions.span import Span, StatusCode

CALL_PREFIX: Final = "tools/call "


def is_call(span: Span) -> bool:
    """Whether the span is a tool call of a client."""
    return span.name.startswith(CALL_PREFIX)


def is_failure(span: Span) -> bool:
    """Whether the span's own status says that it failed."""
    return span.status is StatusCode.ERROR


def is_unanswered(span: Span) -> bool:
    """Whether the log ended before the call was answered: no proof that it failed."""
    return span.attributes.get(OUTCOME) == "unanswered"


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """One session. `name` and `language` are raw text of the log; times are Unix nanoseconds.

    `end` is `closed`, `not closed` (the server went away first) or `unfinished` (no span says yet that it is over).
    """

    trace_id: int
    name: str
    language: str
    start_ns: int
    end_ns: int
    calls: int
    failures: int
    unanswered: int
    end: str
    partial: bool

    @property
    def duration_ns(self) -> int:
        """From the first to the last moment of any span."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class LooseTotals:
    """The calls that belong to no session; each is a trace of its own."""

    calls: int = 0
    failures: int = 0


@dataclass(slots=True)
class _Running:
    start_ns: int
    end_ns: int
    name: str = ""
    language: str = ""
    calls: int = 0
    failures: int = 0
    unanswered: int = 0
    end: str = "unfinished"
    ended_ns: int = -1
    partial: bool = False


class Tally:
    """Counts spans as they come, a few numbers a session: a million spans need no more memory than their sessions."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Running] = {}
        self._loose_calls = 0
        self._loose_failures = 0

    def add(self, span: Span) -> None:
        """Count one span. A root that is no session's is a call without a session, a trace of its own."""
        if span.parent_id == 0 and not span.name.startswith(ROOT_NAME):
            self._loose_calls += 1
            self._loose_failures += is_failure(span)
            return
        session = self._sessions.get(span.trace_id)
        if session is None:
            session = self._sessions[span.trace_id] = _Running(span.start_ns, span.end_ns)
        if span.start_ns < session.start_ns:
            session.start_ns = span.start_ns
        if span.end_ns > session.end_ns:
            session.end_ns = span.end_ns
        if not session.name:
            session.name = str(span.attributes.get(SESSION_NAME, ""))
        if not session.language:
            session.language = str(span.attributes.get(SESSION_LANGUAGE, ""))
        if span.parent_id == 0 and span.attributes.get(PARTIAL) is True:
            session.partial = True
        if is_call(span):
            session.calls += 1
            session.failures += is_failure(span)
            session.unanswered += is_unanswered(span)
        # A session that came back has a second lifetime; the last one says how it ended.
        if span.name == LIFETIME_NAME and span.end_ns > session.ended_ns:
            session.ended_ns = span.end_ns
            finished = span.attributes.get(SNAPSHOT) is not True
            session.end = str(span.attributes.get(END_REASON, "")).replace("_", " ") if finished else "unfinished"

    def sessions(self) -> list[SessionTotals]:
        """Every session, in the order of their starts."""
        found = [
            SessionTotals(
                trace_id=trace_id,
                name=session.name,
                language=session.language,
                start_ns=session.start_ns,
                end_ns=session.end_ns,
                calls=session.calls,
                failures=session.failures,
                unanswered=session.unanswered,
                end=session.end,
                partial=session.partial,
            )
            for trace_id, session in self._sessions.items()
        ]
        return sorted(found, key=lambda session: (session.start_ns, session.trace_id))

    def loose(self) -> LooseTotals:
        """The calls that belong to no session."""
        return LooseTotals(self._loose_calls, self._loose_failures)


def tally(spans: Iterable[Span]) -> Tally:
    """The count of all `spans`."""
    counted = Tally()
    for span in spans:
        counted.add(span)
    return counted
