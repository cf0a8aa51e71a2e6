"""Programs that log entries, each in its own way, and what the same entries become from a file."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog
from pythonjsonlogger.json import JsonFormatter

from otel_bridge import Bridge, BridgeHandler, Span, convert
from otel_bridge.entries.kinds import STRUCTURED_LINE
from otel_bridge.testing import CapturingExporter
from tests.recordings import Recording

Entry = dict[str, Any]
Program = Callable[[logging.Logger, Entry], None]


def entries_of(recording: Recording) -> list[Entry]:
    """The entries and state lines of a recorded log, as a program would have them."""
    return [json.loads(line) for line in recording.lines if STRUCTURED_LINE.search(line)]


def lines_of(entries: Iterable[Mapping[str, object]]) -> list[bytes]:
    """The same as lines of a file."""
    return [json.dumps(entry).encode() for entry in entries]


@contextmanager
def logger_with(handler: logging.Handler) -> Iterator[logging.Logger]:
    """A logger of its own with this handler, which is closed at the end."""
    logger = logging.getLogger(f"program.{uuid.uuid4().hex}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        logger.removeHandler(handler)
        handler.close()


def by_extra(logger: logging.Logger, entry: Entry) -> None:
    """The message, and the fields by `extra=`."""
    fields = dict(entry)
    logger.info(fields.pop("message"), extra=fields)


def by_mapping(logger: logging.Logger, entry: Entry) -> None:
    """The whole entry as the message."""
    logger.info(entry)


def by_text(logger: logging.Logger, entry: Entry) -> None:
    """JSON text as the message."""
    logger.info(json.dumps(entry))


def by_argument(logger: logging.Logger, entry: Entry) -> None:
    """JSON text as an argument of the message."""
    logger.info("%s", json.dumps(entry))


def _structlog(logger: logging.Logger, entry: Entry, *processors: Any) -> None:
    fields = {"_event" if name == "event" else name: value for name, value in entry.items()}
    bound = structlog.wrap_logger(
        logger,
        processors=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, *processors],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    bound.info(fields.pop("message"), **fields)


def by_structlog_text(logger: logging.Logger, entry: Entry) -> None:
    """structlog, which writes JSON in the log's own form."""
    rename = structlog.processors.EventRenamer("message", "_event")
    _structlog(logger, entry, rename, structlog.processors.JSONRenderer())


def by_structlog_unrenamed(logger: logging.Logger, entry: Entry) -> None:
    """structlog, whose word for the message is `event`."""
    _structlog(logger, entry, structlog.processors.JSONRenderer())


def by_structlog_formatter(logger: logging.Logger, entry: Entry) -> None:
    """structlog, which leaves the rendering to a formatter of the standard library's logging."""
    _structlog(logger, entry, structlog.stdlib.ProcessorFormatter.wrap_for_formatter)


PROGRAMS: dict[str, Program] = {
    "extra": by_extra,
    "mapping": by_mapping,
    "text": by_text,
    "argument": by_argument,
    "structlog text": by_structlog_text,
    "structlog unrenamed": by_structlog_unrenamed,
    "structlog formatter": by_structlog_formatter,
}

FEEDS: dict[str, Callable[[Entry], Any]] = {
    "mapping": dict,
    "bytes": lambda entry: json.dumps(entry).encode(),
    "text": json.dumps,
}


def logged(program: Program, entries: Iterable[Entry], **options: Any) -> list[Span]:
    """The spans of a program that logs these entries to a `BridgeHandler`."""
    exporter = CapturingExporter()
    with logger_with(BridgeHandler(exporter, **options)) as logger:
        for entry in entries:
            program(logger, entry)
    return exporter.spans


def fed(entries: Iterable[Any], **options: Any) -> list[Span]:
    """The spans of a program that hands these entries to a `Bridge`."""
    exporter = CapturingExporter()
    with Bridge(exporter, **options) as bridge:
        for entry in entries:
            bridge.feed(entry)
    return exporter.spans


def from_a_file(entries: Iterable[Entry], **options: Any) -> list[Span]:
    """The spans of the same entries as lines of a file."""
    return list(convert(lines_of(entries), **options))


def json_formatter() -> logging.Formatter:
    """python-json-logger as people set it up: the record's own attributes beside the entry's."""
    return JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s %(lineno)d", timestamp=True)
