"""What an answer's frame says of its call: whether it failed, why, and with what result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_bridge.entries.decoding import decode_json
from otel_bridge.entries.flaw import Flaw
from otel_bridge.sessions import attributes as names
from otel_bridge.sessions.attributes import Failure, MappingOptions, low_cardinality
from otel_bridge.sessions.calls import CREATE
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.clip import clip_json, clip_text
from otel_bridge.sessions.frame_call import Answer
from otel_bridge.sessions.redaction import redact, redact_text
from otel_bridge.sessions.span import AttributeValue

Object = Mapping[str, object]


def answer_of(
    message: Object, end_ns: int, tool: str, options: MappingOptions, *, is_debugger: bool, asked: Object
) -> Answer:
    """The answer of a JSON-RPC response to a `tools/call` of this tool; `asked` are what of its arguments names things.

    `error.type` is the JSON-RPC code, or `tool_error` (semantic conventions for MCP); mcp-debugger says by `success` in
    its payload what it does not say by `isError`.
    """
    error = message.get("error")
    if isinstance(error, dict):
        code = redact_text(str(error.get("code")))
        failure = Failure(low_cardinality(code), _shown(error.get("message"), options))
        return Answer(end_ns, failure, {"rpc.response.status_code": clip_text(code, options.max_value_bytes)})
    result = message.get("result")
    told = result if isinstance(result, dict) else {}
    payload = _payload(told)
    fields = payload if isinstance(payload, dict) and is_debugger else {}
    why: Failure | None = None
    if told.get("isError") is True:
        why = Failure(names.TOOL_ERROR, _shown(_text(told), options))
    elif fields.get("success") is False:
        said = fields.get("error")
        why = Failure(names.TOOL_ERROR, _shown(said if isinstance(said, str) else fields.get("message"), options))
    created = redact(fields.get("sessionId")) if tool == CREATE else None
    attributes: dict[str, AttributeValue] = {}
    if options.capture >= Capture.FULL:
        attributes[names.RESULT] = clip_json(redacted_beside(asked, payload), options.max_value_bytes)
    return Answer(end_ns, why, attributes, created if isinstance(created, str) and created else None)


NAMING: Final = ("expression", "name")
"""Arguments that tell what a result is the value of."""


def redacted_beside(asked: Object, payload: object) -> object:
    """A result, redacted knowing what was asked for: a value is hidden for its name, which only the question has."""
    if not isinstance(payload, Mapping):
        return redact(payload)
    asking = {name: asked[name] for name in NAMING if name in asked and name not in payload}
    redacted = redact({**asking, **payload})
    return {name: value for name, value in redacted.items() if name not in asking} if isinstance(redacted, dict) else {}


def _payload(result: Object) -> object:
    """The result itself: structured where the server gives it so, or as JSON text; else its text, else its content."""
    if isinstance(result.get("structuredContent"), dict):
        return result["structuredContent"]
    content = result.get("content")
    if not isinstance(content, list) or not all(
        isinstance(part, dict) and part.get("type") == "text" for part in content
    ):
        return content if content is not None else dict(result)
    text = _text(result)
    value = decode_json(text.encode("utf-8", "surrogatepass")) if text[:1] in ("{", "[") else Flaw.NOT_JSON
    return text if isinstance(value, Flaw) else value


def _text(result: Object) -> str:
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _shown(message: object, options: MappingOptions) -> str:
    """A message as far as the capture level lets it out."""
    if not isinstance(message, str) or options.capture < Capture.ARGUMENTS:
        return ""
    return clip_text(redact_text(message), options.max_value_bytes)
