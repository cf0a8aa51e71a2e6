"""Logs of sessions in the server's format, for tests that need many and choose what goes wrong in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

CALL_MS = 40


@dataclass(slots=True)
class LoggedSession:
    """A session that is written to a log call by call; `time_ms` is Unix milliseconds of what is written next."""

    log: Path
    session_id: str
    time_ms: int

    def begin(self) -> None:
        """Creates the session and sets a breakpoint."""
        name = f"session {self.session_id[:8]}"
        self._entry("tool:call", tool="create_debug_session", request={"language": "python", "name": name})
        self._entry("session:created", sessionId=self.session_id, sessionName=name, language="python")
        self._entry("tool:response", tool="create_debug_session", success=True, response={"sessionId": self.session_id})
        self.call("set_breakpoint")

    def call(self, tool: str, takes_ms: int = CALL_MS) -> None:
        """A call that is answered."""
        self._call(tool)
        self.time_ms += takes_ms
        self._entry("tool:response", tool=tool, sessionId=self.session_id, success=True)

    def fail(self, tool: str) -> None:
        """A call that fails."""
        self._call(tool)
        self._entry("tool:error", tool=tool, sessionId=self.session_id, error="MCP error -32602: not so")

    def leave(self, tool: str) -> None:
        """A call that is never answered."""
        self._call(tool)

    def end(self) -> None:
        """Closes the session."""
        self._call("close_debug_session")
        self._entry("session:closed", sessionId=self.session_id)
        self._entry("tool:response", tool="close_debug_session", sessionId=self.session_id, success=True)

    def _call(self, tool: str) -> None:
        self._entry("tool:call", tool=tool, sessionId=self.session_id, request={"sessionId": self.session_id})

    def _entry(self, message: str, **fields: object) -> None:
        self.time_ms += 1
        entry = {**fields, "level": "info", "message": message, "namespace": "debug-mcp", "timestamp": self.time_ms}
        with self.log.open("a") as log:
            log.write(json.dumps(entry) + "\n")
