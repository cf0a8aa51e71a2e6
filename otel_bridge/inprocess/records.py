"""A `logging.LogRecord` -> the entry in it, if there is one.

An entry can be logged in each of these ways, and becomes the same spans in all of them::

    logger.info("tool:call", extra={"tool": "step_over", "sessionId": session_id})
    logger.info({"message": "tool:call", "tool": "step_over", "sessionId": session_id})
    logger.info('{"message": "tool:call", "tool": "step_over", "sessionId": "..."}')
    structlog.get_logger().info("tool:call", tool="step_over", sessionId=session_id)    # any of structlog's renderers
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from otel_bridge.entries.flaw import Flaw
from otel_bridge.inprocess.snapshot import PREFIXES, snapshot_of_fields, snapshot_of_mapping, snapshot_of_text

RECORD_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"asctime", "message", "taskName"}
"""What a record has of itself, and what formatters and newer versions of Python put into it."""

_BEGINNINGS = (*PREFIXES, "{")


def snapshot_of_record(record: logging.LogRecord, formatter: logging.Formatter | None) -> bytes | Flaw | None:
    """The line for the entry in a record; None if it holds none, which costs next to nothing to find out.

    What `extra=` added to the record are the entry's fields, except names that begin with `_`, as python-json-logger
    has it. Its time is the record's, rounded to milliseconds, unless it has a usable `timestamp`. A `formatter` that
    writes JSON is asked first, so that a handler and a file with the same formatter take the same entry.
    """
    message: object = record.msg
    if isinstance(message, str):
        if message.startswith("%") and record.args:
            message = record.getMessage()
        if not message.startswith(_BEGINNINGS):
            return None
    elif not isinstance(message, Mapping):
        return None
    created_ms = round(record.created * 1000)
    # A plain Formatter writes no JSON, and basicConfig gives one to every handler.
    if formatter is not None and type(formatter) is not logging.Formatter:
        line = _from_text(formatter.format(record), created_ms)
        if isinstance(line, bytes):
            return line
    if not isinstance(message, str):
        return snapshot_of_mapping({**_extra(record), **message}, created_ms)
    return _from_text(message, created_ms) if message.startswith("{") else _from_extra(message, record, created_ms)


def _from_extra(message: str, record: logging.LogRecord, created_ms: int) -> bytes | Flaw | None:
    return snapshot_of_fields(record.getMessage() if record.args else message, _extra(record), created_ms)


def _from_text(text: str, created_ms: int) -> bytes | Flaw | None:
    return snapshot_of_text(text.encode("utf-8", "surrogatepass"), created_ms)


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in RECORD_ATTRIBUTES and name[:1] != "_"}
