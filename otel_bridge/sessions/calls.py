"""Calls in flight, and which of them an answer belongs to (docs/trace-shape.md, "Matching calls and responses")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.attributes import Failure
from otel_bridge.sessions.evidence import ANY, Result, call_key, leaves_evidence
from otel_bridge.sessions.open_span import OpenSpan

CREATE: Final = "create_debug_session"
CLOSE: Final = "close_debug_session"
STEPS: Final = frozenset(("step_over", "step_into", "step_out"))
_MOVES_THE_DEBUGGEE: Final = STEPS | {
    CREATE,
    CLOSE,
    "start_debugging",
    "restart_debugging",
    "attach_to_process",
    "detach_from_process",
    "continue_execution",
    "pause_execution",
}
_CAUSES: Final = {
    "set": frozenset(("set_breakpoint",)),
    "removed": frozenset(("remove_breakpoint",)),
    "cleared": frozenset(("clear_breakpoints",)),
    "verified": frozenset(("set_breakpoint", "start_debugging", "restart_debugging", "attach_to_process")),
    "changed": frozenset(("set_breakpoint", "start_debugging", "restart_debugging", "attach_to_process")),
}
STALE_AFTER_MS: Final = 250
"""A response follows its own result entry at once; when a fresher result waits, one this old lost its response."""


@dataclass(slots=True)
class OpenCall:
    """A call in flight, or (`logged` false) one of which only a result was read because its own entry was lost."""

    tool: str
    number: int
    key: str | None
    span: OpenSpan
    logged: bool = True
    failure: Failure | None = None
    detailed: bool = False
    """Whether the entry that comes before the final result was read."""
    result_ms: int | None = None
    """When its final result was written; None until then."""
    result_failed: bool = False
    opener: bytes | None = None
    """The opening entry's hash, kept where the trace is not known yet."""

    def to_json(self) -> dict[str, object]:
        """The call as JSON values."""
        failure = [self.failure.error_type, self.failure.message] if self.failure else None
        return {
            "tool": self.tool,
            "number": self.number,
            "key": self.key,
            "span": self.span.to_json(),
            "logged": self.logged,
            "failure": failure,
            "detailed": self.detailed,
            "result_ms": self.result_ms,
            "result_failed": self.result_failed,
            "opener": None if self.opener is None else self.opener.hex(),
        }

    @classmethod
    def from_json(cls, saved: dict[str, object]) -> OpenCall:
        """The inverse of `to_json`."""
        values = dict(saved)
        failure = values.pop("failure")
        span = values.pop("span")
        opener = values.pop("opener")
        if not isinstance(span, dict):
            raise TypeError("a saved call has no span")
        return cls(
            **values,  # type: ignore[arg-type]
            failure=Failure(*failure) if isinstance(failure, list) else None,
            span=OpenSpan.from_json(span),
            opener=None if opener is None else bytes.fromhex(str(opener)),
        )


@dataclass(slots=True)
class CallBook:
    """The calls in flight of one session (or of one unknown session id), in the order of the log."""

    calls: list[OpenCall] = field(default_factory=list)
    answered_by: list[OpenCall] = field(default_factory=list)
    """Calls whose final result was read and whose response was not, in the order of the results."""
    stepping: int | None = None
    """Number of the step that set the program running, until the program pauses again."""

    def __bool__(self) -> bool:
        return bool(self.calls)

    def open(self, call: OpenCall) -> None:
        """Notes a call in flight."""
        self.calls.append(call)

    def remove(self, call: OpenCall) -> None:
        """Forgets a call: it is answered, or ended without an answer."""
        self.calls.remove(call)
        if call in self.answered_by:
            self.answered_by.remove(call)
        if self.stepping == call.number:
            self.stepping = None

    def with_result(self, result: Result) -> OpenCall | None:
        """The call that a result entry belongs to: the oldest of its tool with the same key and no such result yet."""
        waiting = [
            call
            for call in self.calls
            if call.tool == result.tool and call.result_ms is None and (result.final or not call.detailed)
        ]
        for call in waiting:
            if call.key == result.key:
                return call
        if result.key == ANY or leaves_evidence(result.tool):
            return next((call for call in waiting if ANY in (call.key, result.key)), None)
        return waiting[0] if waiting else None

    def note_result(self, call: OpenCall, result: Result, time_ms: int) -> None:
        """Notes on the call that this result of it was read."""
        call.detailed = True
        call.result_failed = call.result_failed or result.failed
        if result.final:
            call.result_ms = time_ms
            self.answered_by.append(call)

    def stale(self, tool: str, time_ms: int) -> list[OpenCall]:
        """Calls of `tool` whose response was lost, seen from an answer that comes at `time_ms`."""
        if len(self.answered_by) < 2:
            return []
        ready = [call for call in self.answered_by if call.tool == tool]
        fresh = [call for call in ready if time_ms - (call.result_ms or 0) <= STALE_AFTER_MS]
        if not fresh:
            return []
        return ready[: ready.index(fresh[0])]

    def answered(self, tool: str, *, is_error: bool, closed: bool) -> OpenCall | None:
        """The call that an answer of `tool` belongs to, or None when there is none in flight.

        `closed` says whether the session's `session:closed` was read.
        """
        if len(self.calls) == 1:
            return self.calls[0] if self.calls[0].tool == tool else None
        ready = [call for call in self.answered_by if call.tool == tool]
        waiting = [call for call in self.calls if call.tool == tool and call.result_ms is None]
        if is_error:
            return self._failed(tool, ready, waiting, closed=closed)
        if ready:
            return ready[0]
        if not waiting:
            return None
        if tool == CLOSE and closed:
            return waiting[-1]
        if len(waiting) > 1 and waiting[0].number == self.stepping:
            return waiting[1]  # "Not paused": the oldest step is still under way
        return _unfit(waiting) or waiting[0]

    def _failed(self, tool: str, ready: list[OpenCall], waiting: list[OpenCall], *, closed: bool) -> OpenCall | None:
        failed = next((call for call in ready if call.result_failed), None)
        if failed:
            return failed
        if not waiting:
            return ready[0] if ready else None
        if tool == CLOSE and closed:
            return waiting[0]
        # validation fails at once, while slower calls before it are still under way
        return _unfit(waiting) or (waiting[-1] if leaves_evidence(tool) else waiting[0])

    def set_running(self) -> None:
        """The program began to run: the oldest step in flight is the one that did it."""
        if self.stepping is None:
            self.stepping = next((call.number for call in self.calls if call.tool in STEPS), None)

    def set_resting(self) -> None:
        """The program paused or ended: the step is over, its answer may come."""
        self.stepping = None

    def causing(self, entry: Entry) -> OpenCall | None:
        """The call in flight that an entry happened in: of several the one that causes such entries, else the last."""
        if len(self.calls) < 2:
            return self.calls[0] if self.calls else None
        event = entry.fields.get("event")
        tools = _MOVES_THE_DEBUGGEE if entry.kind == "debug:state" else _CAUSES.get(str(event), frozenset())
        fitting = [call for call in self.calls if call.tool in tools]
        stepping = [call for call in fitting if call.number == self.stepping]
        placed = [
            call for call in fitting if call.key not in (None, ANY) and call.key == call_key(call.tool, entry.fields)
        ]
        return (stepping or placed[:1] or fitting[-1:] or self.calls[-1:])[-1]

    def to_json(self) -> dict[str, object]:
        """The book as JSON values."""
        return {
            "calls": [call.to_json() for call in self.calls],
            "answered_by": [call.number for call in self.answered_by],
            "stepping": self.stepping,
        }

    @classmethod
    def from_json(cls, saved: dict[str, object]) -> CallBook:
        """The inverse of `to_json`."""
        calls = [OpenCall.from_json(call) for call in saved["calls"]]  # type: ignore[attr-defined]
        by_number = {call.number: call for call in calls}
        answered_by = [by_number[number] for number in saved["answered_by"]]  # type: ignore[attr-defined]
        return cls(calls, answered_by, saved["stepping"])  # type: ignore[arg-type]


def _unfit(waiting: list[OpenCall]) -> OpenCall | None:
    return next((call for call in waiting if call.key is None), None)
