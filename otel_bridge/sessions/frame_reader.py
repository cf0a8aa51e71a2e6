"""JSON-RPC frames in, tool calls out: requests, answers and cancellations of one connection, paired by their ids.

Names follow the semantic conventions for MCP; those of the two programs, for which there are none, are `mcp.client.*`
and `mcp.server.*`. Everything is redacted before it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final

from otel_bridge.entries.decoding import decode_json
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import AttributeSet, MappingOptions
from otel_bridge.sessions.calls import CREATE
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.clip import clip_json
from otel_bridge.sessions.frame_answer import NAMING, answer_of
from otel_bridge.sessions.frame_call import Answer, FrameCall, SessionRequest
from otel_bridge.sessions.ids import canonical_json
from otel_bridge.sessions.redaction import redact, redact_text
from otel_bridge.sessions.trace_context import trace_context

MAX_IN_FLIGHT: Final = 1_000
"""Calls that are waited for at once; beyond that the oldest is given up, so that memory stays flat."""

_ID: Final = rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)'
_ID_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST: Final = re.compile(rb",\s*" + _ID + rb"\s*\}\s*$")
"""Only the outermost object's own members stand directly at its ends."""

_META: Final = "io.modelcontextprotocol/"
Object = Mapping[str, object]


class FrameReader:
    """Reads the frames of one connection in the order in which they passed.

    `run_id` is random, 16 bytes. `is_debugger` says that the server is mcp-debugger, whose payloads tell more.
    """

    def __init__(self, run_id: bytes, options: MappingOptions, *, is_debugger: bool) -> None:
        self._run_id = run_id
        self._options = options
        self._is_debugger = is_debugger
        self._in_flight: dict[str, FrameCall] = {}
        self._named: dict[str, Object] = {}
        """What the arguments of the calls in flight name, redacted: it tells what their results are."""
        self._initialize: str | None = None
        self._peers: dict[str, object] = {}
        self.server_name = ""
        """What the server calls itself; empty until it said so."""
        self.unreadable = 0
        """Frames that are no JSON-RPC message."""
        self.unmatched = 0
        """Answers of no call that is known; most are those of other requests."""

    def read(self, frame: Frame) -> list[FrameCall]:
        """The calls that this frame begins, answers or cancels."""
        if frame.data is None:
            return self._long(frame)
        value = decode_json(frame.data)
        messages = value if isinstance(value, list) else [value]
        if isinstance(value, Flaw) or not all(isinstance(message, dict) for message in messages):
            self.unreadable += 1
            return []
        return [call for place, message in enumerate(messages) for call in self._message(frame, place, message)]

    def _message(self, frame: Frame, place: int, message: Object) -> Iterator[FrameCall]:
        method = message.get("method")
        if frame.direction is Direction.TO_SERVER:
            if method == "tools/call":
                yield from self._begin(frame, place, message)
            elif method == "notifications/cancelled":
                yield from self._cancel(frame, _object(message.get("params")))
            elif method == "initialize":
                self._initialize = _key(message.get("id"))
                params = _object(message.get("params"))
                self._note("mcp.protocol.version", params.get("protocolVersion"))
                self._note_program("mcp.client", params.get("clientInfo"))
        elif method is None and "id" in message:
            yield from self._answer(frame, message)

    # the request

    def _begin(self, frame: Frame, place: int, message: Object) -> Iterator[FrameCall]:
        key = _key(message.get("id"))
        if key is None:
            return  # a notification: it has no answer, and is no call
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            oldest_key = next(iter(self._in_flight))
            oldest = self._in_flight.pop(oldest_key)
            self._named.pop(oldest_key, None)
            oldest.answer = Answer(oldest.start_ns, outcome="unanswered")
            yield oldest
        params = _object(message.get("params"))
        meta = _object(params.get("_meta"))
        request = redact(params.get("arguments"))
        tool = redact(params.get("name"))
        asked = _object(request)
        session_id = asked.get("sessionId") if self._is_debugger else None
        call = FrameCall(
            opener=self._opener(frame, place),
            tool=tool if isinstance(tool, str) else "_other",
            session_key=canonical_json(session_id).decode(),
            digest=digest_of(request),
            start_ns=frame.time_ns,
            attributes=self._attributes(tool, request, message.get("id"), meta),
            session_id=session_id if isinstance(session_id, str) else None,
            asked=_session_request(asked) if self._is_debugger and tool == CREATE else None,
            caller=trace_context(meta),
        )
        self._in_flight[key] = call
        self._named[key] = {name: value for name, value in asked.items() if name in NAMING}
        yield call

    def _opener(self, frame: Frame, place: int) -> bytes:
        numbers = (frame.direction.to_bytes(1, "big"), frame.number.to_bytes(8, "big"), place.to_bytes(4, "big"))
        return self._run_id + b"".join(numbers)

    def _attributes(self, tool: object, request: object, request_id: object, meta: Object) -> AttributeSet:
        options = self._options
        # Only of the debugger is it known that `file` and `line` of the arguments are places in code.
        attributes = names.call_attributes(tool, request if self._is_debugger else None, options)
        if not self._is_debugger and request is not None and options.capture >= Capture.ARGUMENTS:
            attributes[names.ARGUMENTS] = clip_json(request, options.max_value_bytes)
        attributes["network.transport"] = "pipe"
        attributes.put("jsonrpc.request.id", redact_text(str(request_id)), options.max_value_bytes)
        own = {"mcp.protocol.version": meta.get(f"{_META}protocolVersion")}
        own |= _program("mcp.client", meta.get(f"{_META}clientInfo"))
        for name, value in {**self._peers, **{name: value for name, value in own.items() if value}}.items():
            if isinstance(value, str):
                attributes.put(name, redact_text(value), options.max_value_bytes)
        return attributes

    # the answer

    def _answer(self, frame: Frame, message: Object) -> Iterator[FrameCall]:
        key = _key(message.get("id"))
        result = _object(message.get("result"))
        if key is not None and key == self._initialize:
            self._initialize = None
            self._note("mcp.protocol.version", result.get("protocolVersion"))
            self._note_program("mcp.server", result.get("serverInfo"))
            self._note_server(result.get("serverInfo"))
            return
        if not self.server_name:
            self._note_server(_object(result.get("_meta")).get(f"{_META}serverInfo"))
        call = self._in_flight.pop(key, None) if key is not None else None
        asked = self._named.pop(key, {}) if key is not None else {}
        if call is None:
            self.unmatched += 1
            return
        if call.answer is None:
            answer = answer_of(
                message, frame.time_ns, call.tool, self._options, is_debugger=self._is_debugger, asked=asked
            )
            call.answer = answer
            yield call

    def _long(self, frame: Frame) -> list[FrameCall]:
        """A frame over the limit: it is not parsed, but the call that it answers ends here."""
        found = _ID_FIRST.match(frame.head) or _ID_LAST.search(frame.tail)
        if frame.direction is Direction.TO_SERVER or found is None:
            return []
        key = _key(decode_json(found[1])) or ""
        call = self._in_flight.pop(key, None)
        self._named.pop(key, None)
        if call is None or call.answer is not None:
            return []
        call.answer = Answer(
            frame.time_ns, attributes={"otel_bridge.answer_bytes": frame.size_bytes}, outcome="too_long"
        )
        return [call]

    def _cancel(self, frame: Frame, params: Object) -> Iterator[FrameCall]:
        call = self._in_flight.get(_key(params.get("requestId")) or "")
        if call is not None and call.answer is None and call.cancelled_ns is None:
            call.cancelled_ns = frame.time_ns
            yield call

    # who speaks

    def _note(self, name: str, value: object) -> None:
        if isinstance(value, str):
            self._peers[name] = value

    def _note_server(self, info: object) -> None:
        name = _object(info).get("name")
        self.server_name = name if isinstance(name, str) else self.server_name

    def _note_program(self, prefix: str, info: object) -> None:
        for name, value in _program(prefix, info).items():
            self._note(name, value)


def digest_of(request: object) -> str:
    """A hash of a call's redacted arguments, without the path that the server hides in its log; none are `{}` there."""
    if request is None:
        request = {}
    if isinstance(request, Mapping):
        request = {name: value for name, value in request.items() if name != "executablePath"}
    return blake2b(canonical_json(request), digest_size=8).hexdigest()


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _key(request_id: object) -> str | None:
    """Ids are compared by type and value: 1 is not "1". None for what can be no id of a call."""
    if isinstance(request_id, str):
        return f'"{request_id}'
    if isinstance(request_id, bool) or not isinstance(request_id, (int, float)):
        return None
    return str(int(request_id)) if request_id == int(request_id) else str(request_id)


def _program(prefix: str, info: object) -> dict[str, object]:
    told = _object(info)
    return {f"{prefix}.name": told.get("name"), f"{prefix}.version": told.get("version")}


def _session_request(request: Object) -> SessionRequest:
    def text(name: str) -> str | None:
        value = request.get(name)
        return value if isinstance(value, str) else None

    return SessionRequest(text("name"), text("language"), text("executablePath"))
