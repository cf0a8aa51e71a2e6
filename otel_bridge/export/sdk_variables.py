"""Variables of the SDK that are nothing to an exporter, and end its import or its making when their value is none.

The SDK reads its limits for spans when it is imported, and loads what other variables name by entry points. The bridge
asks for none of that: a value that nobody could use is put aside while the exporter is imported and made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points

_COUNTS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",)
_ENTRY_POINTS = {
    "OTEL_PYTHON_CONTEXT": "opentelemetry_context",
    "OTEL_PYTHON_METER_PROVIDER": "opentelemetry_meter_provider",
}


def unusable(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names of those variables whose value is no count from 0, or names nothing that is installed."""
    counts = [name for name in _COUNTS if not _is_count(environ.get(name, ""))]
    named = [
        name for name, group in _ENTRY_POINTS.items() if (value := environ.get(name)) and not _is_there(group, value)
    ]
    return (*counts, *named)


@contextmanager
def unusable_put_aside() -> Iterator[None]:
    """Within it this process's environment is without the variables that are `unusable`."""
    aside = {name: os.environ.pop(name) for name in unusable(os.environ)}
    try:
        yield
    finally:
        os.environ.update(aside)


def _is_count(value: str) -> bool:
    try:
        return not value.strip() or int(value) >= 0
    except ValueError:
        return False


def _is_there(group: str, name: str) -> bool:
    return bool(entry_points(group=group, name=name))
