"""A log that is being written: one live session, as the server writes it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from benchmarks.recorder import mark


def entry_line(kind: str, time_ms: int, *fields: Mapping[str, object]) -> bytes:
    """A line of the log: an entry of this kind and time, with the fields."""
    entry: dict[str, object] = {"level": "info", "namespace": "debug-mcp", "message": kind, "timestamp": time_ms}
    for more in fields:
        entry |= more
    return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)


def opening(session_id: str, name: str, time_ms: int) -> bytes:
    """The entries of a session that was begun."""
    session = {"sessionId": session_id, "sessionName": name}
    tool = {"tool": "create_debug_session"}
    return (
        entry_line("tool:call", time_ms, tool, {"request": {"language": "python", "name": name}})
        + entry_line("session:created", time_ms, session, {"language": "python", "executablePath": "python3"})
        + entry_line("tool:response", time_ms, tool, {"success": True})
    )


class LiveLog:
    """A log with one open session. It is held open while the block runs, as a living server holds its own."""

    def __init__(self, path: Path, number: int = 0) -> None:
        """`number` is that of the mark in the session's name."""
        self.path = path
        self._session = {"sessionId": str(uuid.uuid4()), "sessionName": mark("session", number)}
        self.session_mark = self._session["sessionName"]
        """In the root, which is sent first."""
        self.trace_id = self._session["sessionId"].replace("-", "")
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        self._file.write(opening(self._session["sessionId"], self.session_mark, time.time_ns() // 1_000_000))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def call(self, number: int) -> bytes:
        """The line of an evaluation: its span will carry `mark("call", number)`."""
        request = {"sessionId": self._session["sessionId"], "expression": f"total == '{mark('call', number)}'"}
        return self._line("tool:call", **self._session, tool="evaluate_expression", request=request)

    def response(self, number: int) -> bytes:
        """The line that ends it, with `mark("end", number)` in it."""
        answer = {"success": True, "result": mark("end", number)}
        return self._line("tool:response", **self._session, tool="evaluate_expression", success=True, response=answer)

    def write(self, *lines: bytes) -> float:
        """Appends lines at once; gives the moment before, in seconds of `time.perf_counter`."""
        data = b"".join(lines)
        before_s = time.perf_counter()
        self._file.write(data)
        return before_s

    def _line(self, kind: str, **fields: object) -> bytes:
        return entry_line(kind, time.time_ns() // 1_000_000, fields)
