"""The names of spans, events and attributes, and what of an entry goes into them at each capture level.

Names follow the OpenTelemetry semantic conventions for MCP, GenAI and code; what they have no name for is `debug.*`
(about the debugged program) or `otel_bridge.*` (about the trace itself). Every value given to these functions is
redacted already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.clip import clip_json, clip_text, otlp_value
from otel_bridge.sessions.span import AttributeValue, SpanEvent

SESSION_ID: Final = "debug.session.id"
SESSION_NAME: Final = "debug.session.name"
SESSION_LANGUAGE: Final = "debug.session.language"
END_REASON: Final = "debug.session.end_reason"
STATE_REASON: Final = "debug.state.reason"
EXECUTABLE: Final = "process.executable.path"
FILE: Final = "code.file.path"
LINE: Final = "code.line.number"
FUNCTION: Final = "code.function.name"
THREAD: Final = "thread.id"
TOOL: Final = "gen_ai.tool.name"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
ERROR_TYPE: Final = "error.type"
OUTCOME: Final = "otel_bridge.outcome"
PARTIAL: Final = "otel_bridge.partial"
SNAPSHOT: Final = "otel_bridge.snapshot"

ROOT_NAME: Final = "debug_session"
LIFETIME_NAME: Final = "debug_session lifetime"
EVENT_NAME: Final = "debug_session event"
EVENTS_NAME: Final = "debug_session events"

TOOL_ERROR: Final = "tool_error"
"""`error.type` of a tool that said it failed (semantic conventions for MCP)."""

_LONGEST_NAME: Final = 64
_LOW_CARDINALITY: Final = re.compile(rf"[A-Za-z0-9_.:/-]{{1,{_LONGEST_NAME}}}")
_MCP_ERROR: Final = re.compile(r"MCP error (-\d{1,10})\b")
# Asked at every entry, where finding an enumeration's member costs more than comparing it.
WITH_ARGUMENTS: Final = Capture.ARGUMENTS
IN_FULL: Final = Capture.FULL


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """What the mapping may be told: how much it sends, when silence means the end, and the limits of a span."""

    capture: Capture = Capture.ARGUMENTS
    idle_timeout_ms: int = 3_600_000
    max_value_bytes: int = 2048
    max_events: int = 128


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed: `error.type`, and the message where the capture level lets it out."""

    error_type: str
    message: str = ""


def low_cardinality(name: object) -> str:
    """The name itself where it is fit for a span's name, else `_other`: clients invent tools."""
    return name if isinstance(name, str) and len(name) <= _LONGEST_NAME and _is_low_cardinality(name) else "_other"


@lru_cache(maxsize=256)
def _is_low_cardinality(name: str) -> bool:
    return _LOW_CARDINALITY.fullmatch(name) is not None


def error_type(message: object) -> str:
    """The JSON-RPC code that the server's own message starts with, else `tool_error`."""
    found = _MCP_ERROR.match(message) if isinstance(message, str) else None
    return found.group(1) if found else TOOL_ERROR


def failure(message: object, options: MappingOptions) -> Failure:
    """A failure with its message as far as it may be shown; `metadata` shows none."""
    shown = message if isinstance(message, str) and options.capture >= WITH_ARGUMENTS else ""
    return Failure(error_type(message), clip_text(shown, options.max_value_bytes))


class AttributeSet(dict[str, AttributeValue]):
    """Attributes of one span or event; a value that OTLP can't carry is made one that it can."""

    __slots__ = ()

    def put(self, name: str, value: object, max_value_bytes: int) -> None:
        """Adds `name` unless the value is null."""
        if isinstance(value, str):
            self[name] = clip_text(value, max_value_bytes)
        elif (fitting := otlp_value(value, max_value_bytes)) is not None:
            self[name] = fitting


def put_place(attributes: AttributeSet, place: Mapping[str, object], options: MappingOptions) -> None:
    """`code.*` of anything that has a file, a line, and maybe a function."""
    file, line, function = place.get("file"), place.get("line"), place.get("function")
    if isinstance(file, str):
        attributes[FILE] = clip_text(file, options.max_value_bytes)
    if isinstance(line, int) and not isinstance(line, bool):
        attributes.put(LINE, line, options.max_value_bytes)
    if isinstance(function, str):
        attributes[FUNCTION] = clip_text(function, options.max_value_bytes)


_OF_EVERY_CALL: Final = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}


def call_attributes(tool: object, request: object, options: MappingOptions) -> AttributeSet:
    """Attributes of a tool call's span, by the semantic conventions for MCP servers."""
    attributes = AttributeSet(_OF_EVERY_CALL)
    attributes.put(TOOL, tool if tool is not None else "_other", options.max_value_bytes)
    if isinstance(request, (dict, Mapping)):
        put_place(attributes, request, options)
        if FILE not in attributes and isinstance(request.get("scriptPath"), str):
            attributes.put(FILE, request["scriptPath"], options.max_value_bytes)
    if request is not None and options.capture >= WITH_ARGUMENTS:
        attributes[ARGUMENTS] = clip_json(request, options.max_value_bytes)
    return attributes


_WITH_THE_SESSION: Final = frozenset(("sessionId", "sessionName", "tool", "level", "namespace"))
_ALWAYS: Final = {
    "reason": STATE_REASON,
    "threadId": THREAD,
    "breakpointId": "debug.breakpoint.id",
    "verified": "debug.breakpoint.verified",
    "category": "debug.output.category",
    "cleared": "debug.breakpoint.cleared",
    "functionBreakpoints": "debug.breakpoint.function_breakpoints",
    "variableCount": "debug.variables.count",
    "duration": "debug.session.duration_ms",
}
_IN_ARGUMENTS: Final = {
    "condition": "debug.breakpoint.condition",
    "logMessage": "debug.breakpoint.log_message",
    "hitCondition": "debug.breakpoint.hit_condition",
    "expression": "debug.expression",
    "error": "error.message",
    "host": "server.address",
    "port": "server.port",
}
_TOLD_ELSEWHERE: Final = _WITH_THE_SESSION | {"file", "line", "function", "location"}
_IN_THE_NAME: Final = {"debug:state": "event", "debug:breakpoint": "event"}


def event_name(entry: Entry) -> str:
    """`debug.state.paused`, `debug.breakpoint.set`, else the kind with dots."""
    name = entry.kind.replace(":", ".")
    if entry.kind in _IN_THE_NAME:
        return f"{name}.{low_cardinality(entry.fields.get('event'))}"
    return low_cardinality(name)


def call_name(tool: object) -> str:
    """`tools/call evaluate_expression`: the name of a call's span, by the semantic conventions for MCP."""
    return f"tools/call {low_cardinality(tool)}"


def event_of(entry: Entry, options: MappingOptions) -> SpanEvent:
    """An entry as a span event, with what the capture level lets out of it."""
    return SpanEvent(event_name(entry), entry.time_ms * NS_PER_MS, entry_attributes(entry, options))


def entry_attributes(entry: Entry, options: MappingOptions) -> AttributeSet:
    """What an entry says, as attributes: place and state always, arguments and values by the capture level."""
    fields, limit = entry.fields, options.max_value_bytes
    attributes = AttributeSet()
    location = fields.get("location")
    put_place(attributes, location if isinstance(location, (dict, Mapping)) else fields, options)
    rest: dict[str, object] = {}
    told = [name for name in fields if name not in _TOLD_ELSEWHERE]
    told.sort()  # writers of one entry order its fields each in their own way
    for name in told:
        value = fields[name]
        if (attribute := _ALWAYS.get(name)) is not None:
            attributes.put(attribute, value, limit)
        elif name == "event" and entry.kind in _IN_THE_NAME:
            if low_cardinality(value) == "_other":
                attributes.put("debug.event", value, limit)
        elif (attribute := _IN_ARGUMENTS.get(name)) is not None:
            if options.capture >= WITH_ARGUMENTS:
                attributes.put(attribute, value, limit)
        else:
            rest[name] = value
    if entry.text and options.capture >= WITH_ARGUMENTS:
        attributes.put("debug.entry.text", entry.text, limit)
    if rest and options.capture >= IN_FULL:
        attributes["debug.entry.fields"] = clip_json(rest, limit)
    return attributes


def result_fields(entry: Entry) -> object:
    """The part of a result entry that is the result: its `response`, else all but the session and the expression."""
    if "response" in entry.fields:
        return entry.fields["response"]
    left_out = _WITH_THE_SESSION | {"expression"}
    return {name: value for name, value in sorted(entry.fields.items()) if name not in left_out}
