"""What a host hands over -> a line of JSON that is the bridge's own, without secrets.

Writing JSON takes a copy, so that the host may change its objects afterwards; it gives an entry the form that it would
have in a file, so that both become the same spans; and it is what can be redacted before it is queued.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import cast

import orjson

from otel_bridge.entries.decoding import decode_json
from otel_bridge.entries.entry import Flaw
from otel_bridge.entries.kinds import KNOWN_KINDS, split_kind, split_state_change
from otel_bridge.entries.reader import DEFAULT_MAX_LINE_BYTES
from otel_bridge.entries.times import time_ms
from otel_bridge.sessions.redaction import redact, redact_text

PREFIXES = ("tool:", "debug:", "session:", "[SM _updateSessionState ")
"""What the message of an entry or a state line begins with."""

_STRUCTURED_TEXT = re.compile(
    rb'"(?:message|event)"[ \t]*:[ \t]*"(?:(?:tool|debug|session):|\[SM _updateSessionState )',
)


def snapshot_of_text(text: bytes, created_ms: int | None = None) -> bytes | Flaw | None:
    """The line for an entry as JSON text; None if it is no entry, a flaw if it looks like one and is not.

    `created_ms`, Unix milliseconds, is the entry's time if it has no usable one itself.
    """
    if not _STRUCTURED_TEXT.search(text):
        return None
    if len(text) > DEFAULT_MAX_LINE_BYTES:
        return Flaw.TOO_LONG
    value = decode_json(text)
    if isinstance(value, dict):
        return _line(value, created_ms)
    return value if isinstance(value, Flaw) else Flaw.NOT_OBJECT


def snapshot_of_fields(fields: Mapping[str, object], created_ms: int | None = None) -> bytes | Flaw | None:
    """The same for an entry as a mapping. A value that JSON does not know becomes its text.

    Whatever the conversion of the host's own objects raises is raised, and ValueError or TypeError for a structure
    that has no JSON form, such as one that holds itself.
    """
    message = fields.get("message", fields.get("event"))
    if not isinstance(message, str) or not message.startswith(PREFIXES):
        return None
    try:
        text = orjson.dumps(fields, default=_json_value)
    except TypeError:
        # Keys that are no text, an integer of more than 64 bits, a lone surrogate: as the standard library has it.
        return snapshot_of_text(json.dumps(fields, default=_json_value).encode(), created_ms)
    if len(text) > DEFAULT_MAX_LINE_BYTES:
        return Flaw.TOO_LONG
    return _line(orjson.loads(text), created_ms)


def _line(fields: dict[str, object], created_ms: int | None) -> bytes | None:
    """`fields` are JSON values of our own by now."""
    if "message" not in fields and "event" in fields:
        _rename_event(fields)
    message = fields.pop("message", None)
    if not isinstance(message, str):
        return None
    if created_ms is not None and time_ms(fields.get("timestamp")) is None:
        fields["timestamp"] = created_ms
    if message not in KNOWN_KINDS:
        kind = split_kind(message)
        if kind is not None:
            message = f"{kind[0]} {redact_text(kind[1])}" if kind[1] else kind[0]
        elif split_state_change(message) is not None:
            fields = {"timestamp": fields.get("timestamp")}
        else:
            return None
    line = {"message": message, **cast("Mapping[str, object]", redact(fields))}
    try:
        return orjson.dumps(line)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(line).encode()


def _rename_event(fields: dict[str, object]) -> None:
    """structlog calls the message `event`; an entry's own `event` is in `_event` then, as for its `EventRenamer`."""
    fields["message"] = fields.pop("event")
    if "_event" in fields:
        fields["event"] = fields.pop("_event")


def _json_value(value: object) -> object:
    match value:
        case Mapping():
            return dict(value)
        case bytes() | bytearray():
            return value.decode(errors="replace")
        case Collection() if not isinstance(value, str):
            return list(value)
    return str(value)
