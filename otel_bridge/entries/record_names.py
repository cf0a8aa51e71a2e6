"""Names by which Python's loggers write down things of their own beside an entry: a logger's name, a line of code.

They differ between two programs that log the same entry, and between a program's handler and its file, so they are not
part of the entry (docs/trace-shape.md, "Ids").
"""

from __future__ import annotations

from typing import Final

_TELLING: Final = frozenset(
    {
        # Attributes of a `logging.LogRecord` that no entry has.
        "asctime",
        "exc_info",
        "exc_text",
        "funcName",
        "levelname",
        "levelno",
        "lineno",
        "msecs",
        "pathname",
        "processName",
        "relativeCreated",
        "stack_info",
        "taskName",
        "threadName",
        # As structlog calls the same.
        "func_name",
        "logger",
        "process_name",
        "thread_name",
    }
)

_AMBIGUOUS: Final = frozenset({"args", "created", "filename", "module", "msg", "name", "process", "thread"})
"""Attributes of a `logging.LogRecord` whose names an entry of a kind unknown so far could have as well."""


def drop_record_names(fields: dict[str, object]) -> None:
    """Take out of an entry's fields what a Python logger added; an ambiguous name only beside an unmistakable one."""
    if not _TELLING.isdisjoint(fields):
        for name in _TELLING | _AMBIGUOUS:
            fields.pop(name, None)
