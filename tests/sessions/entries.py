"""Entries by hand, and the spans that they become, for tests of the mapping."""

from __future__ import annotations

from collections.abc import Iterable

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span

SID = "806a0589-7b86-490d-9928-679ab71012c1"
OTHER = "f9f2324b-8a90-490a-af48-fd48c349e4b7"
T0 = 1_796_071_984_000
"""Unix ms of the first entry of a hand-made log."""


def entry(kind: str, at_ms: int, text: str = "", /, **fields: object) -> Entry:
    """An entry `at_ms` after `T0`."""
    return Entry(kind, text, T0 + at_ms, fields)


def created(at_ms: int, sid: str = SID, name: str = "demo", **fields: object) -> Entry:
    """A `session:created`."""
    return entry("session:created", at_ms, sessionId=sid, sessionName=name, language="python", **fields)


def call(tool: str, at_ms: int, sid: str | None = SID, /, session_name: str = "demo", **request: object) -> Entry:
    """A `tool:call`; without a session id it is one of a tool that needs none."""
    if sid is None:
        return entry("tool:call", at_ms, tool=tool, request=request)
    return entry(
        "tool:call", at_ms, tool=tool, sessionId=sid, sessionName=session_name, request={"sessionId": sid, **request}
    )


def response(tool: str, at_ms: int, sid: str | None = SID, /, success: bool = True, **fields: object) -> Entry:
    """A `tool:response`."""
    whose = {} if sid is None else {"sessionId": sid, "sessionName": "demo"}
    return entry("tool:response", at_ms, tool=tool, success=success, **whose, **fields)


def error(tool: str, at_ms: int, sid: str | None = SID, message: str = "MCP error -32602: no") -> Entry:
    """A `tool:error`."""
    whose = {} if sid is None else {"sessionId": sid, "sessionName": "demo"}
    return entry("tool:error", at_ms, tool=tool, error=message, **whose)


def state(event: str, at_ms: int, sid: str = SID, **fields: object) -> Entry:
    """A `debug:state`."""
    return entry("debug:state", at_ms, event=event, sessionId=sid, sessionName="demo", **fields)


def line(before: str, after: str, at_ms: int, sid: str = SID) -> StateChange:
    """A state line."""
    return StateChange(sid, before, after, T0 + at_ms)


def closed(at_ms: int, sid: str = SID, **fields: object) -> Entry:
    """A `session:closed`."""
    return entry("session:closed", at_ms, sessionId=sid, sessionName="demo", **fields)


def mapped(items: Iterable[Entry | StateChange], *, options: MappingOptions | None = None) -> list[Span]:
    """All spans of a finished log, whose end is long past."""
    mapping = LogMapping(options or MappingOptions())
    spans = mapping.take(items)
    return spans + mapping.end(mapping.latest_ms + 10 * mapping.options.idle_timeout_ms)


def named(spans: Iterable[Span], name: str) -> list[Span]:
    """The spans of this name, in order."""
    return [span for span in spans if span.name == name]


def one(spans: Iterable[Span], name: str) -> Span:
    """The only span of this name."""
    (only,) = named(spans, name)
    return only


def since_t0_ms(time_ns: int) -> float:
    """Milliseconds after `T0`."""
    return (time_ns - T0 * 1_000_000) / 1e6
