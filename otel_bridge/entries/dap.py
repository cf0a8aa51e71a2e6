"""Lines of a DAP trace (`dap-trace-<sessionId>.ndjson`): what the server and the debug adapter said to each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from otel_bridge.entries.decoding import decode_json
from otel_bridge.entries.entry import Malformed
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.times import time_ms

TRACE_NAME: Final = re.compile(r"dap-trace-([0-9A-Za-z-]{1,64})\.ndjson")
"""The file's name holds the session id; the server makes no other."""


@dataclass(frozen=True, slots=True)
class DapMessage:
    """One message of the Debug Adapter Protocol. `direction` is `out` (to the adapter) or `in`; time is Unix ms."""

    time_ms: int
    direction: str
    payload: Mapping[str, object]


def decode_dap_line(line: bytes) -> DapMessage | Flaw:
    """A line of a trace as a message, or what is wrong with it."""
    decoded = decode_json(line)
    if isinstance(decoded, Flaw):
        return decoded
    if not isinstance(decoded, dict):
        return Flaw.NOT_OBJECT
    payload, direction = decoded.get("payload"), decoded.get("direction")
    if not isinstance(payload, dict) or not isinstance(direction, str):
        return Flaw.NOT_OBJECT
    when = time_ms(decoded.get("ts"))
    return Flaw.NO_TIME if when is None else DapMessage(when, direction, payload)


def traced_session(path: str) -> str | None:
    """The session that a file is the DAP trace of, by its name; None for any other file."""
    found = TRACE_NAME.fullmatch(path.replace("\\", "/").rpartition("/")[2])
    return found.group(1) if found else None


class DapReader:
    """Turns the blocks of a DAP trace into messages; a line over `max_line_bytes` is let go of and counted."""

    def __init__(self, path: str, *, start_byte: int = 0, max_line_bytes: int = 16 << 20) -> None:
        self._path = path
        self._max_line_bytes = max_line_bytes
        self._next_byte = start_byte
        self._pending = bytearray()
        self._skipping = False
        self.pending_start_byte = start_byte
        """The offset up to which all lines are complete."""

    def feed(self, block: bytes) -> list[DapMessage | Malformed]:
        """The messages of the lines that end in this block, and what was wrong with the others."""
        items: list[DapMessage | Malformed] = []
        *ends, rest = block.split(b"\n")
        for part in ends:
            self._next_byte += len(part) + 1
            if self._skipping or len(self._pending) + len(part) > self._max_line_bytes:
                items.append(Malformed(Flaw.TOO_LONG, self._path, self.pending_start_byte))
            elif line := bytes(self._pending + part):
                decoded = decode_dap_line(line)
                if isinstance(decoded, Flaw):
                    items.append(Malformed(decoded, self._path, self.pending_start_byte))
                else:
                    items.append(decoded)
            self._pending.clear()
            self._skipping = False
            self.pending_start_byte = self._next_byte
        self._next_byte += len(rest)
        if len(self._pending) + len(rest) > self._max_line_bytes:
            self._pending.clear()
            self._skipping = True
        elif not self._skipping:
            self._pending += rest
        return items
