"""What one line of the log can be, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from otel_bridge.entries.flaw import Flaw
from otel_bridge.values import value


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, without its newline.

    `start_byte` is the offset of the line's first byte in `path`; both are for messages only, never for ids.
    """

    data: bytes
    path: str
    start_byte: int


@value(frozen=True, slots=True)
class Entry:
    """A structured entry of the log.

    `kind` is the known kind (`tool:call`), `text` what was glued behind it (winston does that when an entry has a
    `message` of its own), `time_ms` Unix milliseconds. `fields` holds every other field as decoded JSON, without
    `message` and `timestamp`; unknown ones are kept.
    """

    kind: str
    text: str
    time_ms: int
    fields: Mapping[str, object]


@value(frozen=True, slots=True)
class StateChange:
    """A `[SM _updateSessionState SID] State change: A -> B` line: unstructured, but the whole truth about states."""

    session_id: str
    before: str
    after: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that was skipped, and why. It is counted, and named once with its file and byte offset."""

    flaw: Flaw
    path: str
    start_byte: int


Item = Entry | StateChange | Malformed
