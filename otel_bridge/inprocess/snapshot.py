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
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.kinds import KNOWN_KINDS, split_kind, split_state_change
from otel_bridge.entries.reader import DEFAULT_MAX_LINE_BYTES
from otel_bridge.entries.times import time_ms
from otel_bridge.sessions.redaction import redact, redact_text
from otel_bridge.sessions.redaction_memory import is_known

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


def snapshot_of_mapping(entry: Mapping[str, object], created_ms: int | None = None) -> bytes | Flaw | None:
    """The same for an entry as a mapping; see `snapshot_of_fields` for what it can raise."""
    fields = dict(entry)
    message = _take_message(fields)
    return None if message is None else snapshot_of_fields(message, fields, created_ms)


def snapshot_of_fields(message: str, fields: dict[str, object], created_ms: int | None) -> bytes | Flaw | None:
    """The same for an entry's message and its other fields, in a dictionary that is taken over.

    A value that JSON does not know becomes its text. Whatever the conversion of the host's own objects raises is
    raised, and ValueError or TypeError for a structure that has no JSON form, such as one that holds itself.
    """
    is_timed = created_ms is None or time_ms(fields.setdefault("timestamp", created_ms)) is not None
    # Most of what most entries hold was redacted before: then a look at each value is all.
    is_ready = is_timed and message in KNOWN_KINDS and is_known(fields)
    fields["message"] = message
    try:
        text = orjson.dumps(fields, default=_json_value)
    except TypeError:
        # Keys that are no text, an integer of more than 64 bits, a lone surrogate: as the standard library has it.
        return snapshot_of_text(json.dumps(fields, default=_json_value).encode(), created_ms)
    if len(text) > DEFAULT_MAX_LINE_BYTES:
        return Flaw.TOO_LONG
    return text if is_ready else _line(orjson.loads(text), created_ms)


def _line(fields: dict[str, object], created_ms: int | None) -> bytes | None:
    """`fields` are JSON values of our own by now."""
    message = _take_message(fields)
    if message is None:
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
    line = cast("dict[str, object]", redact(fields))
    line["message"] = message
    try:
        return orjson.dumps(line)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(line).encode()


def _take_message(fields: dict[str, object]) -> str | None:
    """Take the message out, if it can be an entry's.

    structlog calls it `event`; an entry's own `event` is in `_event` then, as for structlog's `EventRenamer`.
    """
    message = fields.pop("message", None)
    if message is None and "event" in fields:
        message = fields.pop("event")
        if "_event" in fields:
            fields["event"] = fields.pop("_event")
    return message if isinstance(message, str) and message.startswith(PREFIXES) else None


def _json_value(value: object) -> object:
    match value:
        case Mapping():
            return dict(value)
        case bytes() | bytearray():
            return value.decode(errors="replace")
        case Collection() if not isinstance(value, str):
            return list(value)
    return str(value)
