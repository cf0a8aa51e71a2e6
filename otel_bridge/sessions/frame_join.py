"""Which call of the log is which call of the frames.

A server on stdio reads its requests in the order in which they were sent, so of calls that look alike the first in the
log is the first on the wire. What tells calls apart is the tool, the session id and, where the server logs them as
they came, the arguments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions.calls import OpenCall
from otel_bridge.sessions.frame_call import FrameCall
from otel_bridge.sessions.frame_reader import digest_of
from otel_bridge.sessions.ids import canonical_json

EARLIEST_MS, LATEST_MS = 2, 60_000
"""How long before and after its request a call can be logged: whole milliseconds, a server that is busy."""

_REMEMBERED_MS: Final = 120_000
_MOST_REMEMBERED: Final = 1_000

_Call = TypeVar("_Call", "FrameCall", "Given")


@dataclass(slots=True)
class LoggedCall:
    """A call of the log that is in flight there: what is known of it, and the call of the frames that it is.

    `is_given` says that its span was given out before the log told of it.
    """

    call: OpenCall
    session_key: str
    digest: str
    start_ms: int
    frame: FrameCall | None = None
    is_given: bool = False

    @classmethod
    def of(cls, call: OpenCall, entry: Entry) -> LoggedCall:
        """The call that a redacted `tool:call` began."""
        key = key_of(entry.fields.get("sessionId"))
        return cls(call, key, digest_of(entry.fields.get("request")), entry.time_ms)

    def pick(self, frames: Iterable[FrameCall], *, all_known: bool) -> FrameCall | None:
        """The call of the frames that this is, among those that wait for one."""
        waiting = [frame for frame in frames if frame.log_number is None and fits(self, frame)]
        return self.best(waiting, all_known=all_known)

    def best(self, fitting: Sequence[_Call], *, all_known: bool) -> _Call | None:
        """Of calls that fit the first with the same arguments; else, where none can be missing, the first.

        The server may log a number or a text in another form than it came in.
        """
        same = next((one for one in fitting if one.digest == self.digest), None)
        return same or (fitting[0] if fitting and all_known else None)


def key_of(session_id: object) -> str:
    """A session id, of whatever type, as text to compare."""
    return canonical_json(session_id).decode()


def fits(logged: LoggedCall, frame: FrameCall | Given) -> bool:
    """Whether a call of the log can be this call of the frames."""
    late_ms = logged.start_ms - frame.start_ns // 1_000_000
    return (
        logged.call.tool == frame.tool
        and logged.session_key == frame.session_key
        and -EARLIEST_MS <= late_ms <= LATEST_MS
    )


@dataclass(slots=True)
class Given:
    """A call whose span was given out while the log had not told of all of it: what the log tells then is no news.

    `begin_is_open` and `end_is_open` say which of its two entries may still come.
    """

    tool: str
    session_key: str
    digest: str
    start_ns: int
    end_ns: int
    begin_is_open: bool
    end_is_open: bool

    @classmethod
    def of(cls, call: FrameCall) -> Given:
        """What is to be remembered of a call that is given out."""
        end_ns = call.answer.end_ns if call.answer else call.start_ns
        begin_is_open, end_is_open = call.log_number is None, call.log_answer is None
        return cls(
            call.tool,
            call.session_key,
            call.digest,
            call.start_ns,
            end_ns,
            begin_is_open,
            end_is_open,
        )


class GivenCalls:
    """The calls given out lately of which the log may still tell."""

    def __init__(self, calls: Iterable[Given] = ()) -> None:
        self._calls = deque(calls, maxlen=_MOST_REMEMBERED)

    def __iter__(self) -> Iterator[Given]:
        return iter(self._calls)

    def add(self, call: FrameCall) -> None:
        """Remember a call that is given out, and forget old ones."""
        given = Given.of(call)
        while self._calls and given.end_ns - self._calls[0].end_ns > _REMEMBERED_MS * NS_PER_MS:
            self._calls.popleft()
        if given.begin_is_open or given.end_is_open:
            self._calls.append(given)

    def began(self, logged: LoggedCall, *, all_known: bool) -> bool:
        """Whether this late `tool:call` is that of a call which was given out; true once for each."""
        open_calls = [given for given in self._calls if given.begin_is_open and fits(logged, given)]
        found = logged.best(open_calls, all_known=all_known)
        if found is not None:
            found.begin_is_open = found.end_is_open = False  # the log pairs the answer with this call by itself
        return found is not None

    def ended(self, tool: str, session_key: str, end_ms: int) -> bool:
        """Whether an answer without a call in the log is that of a call which was given out; true once for each."""
        for given in self._calls:
            if given.end_is_open and (given.tool, given.session_key) == (tool, session_key):
                late_ms = end_ms - given.end_ns // 1_000_000
                if -LATEST_MS <= late_ms <= LATEST_MS:
                    given.end_is_open = False
                    return True
        return False
