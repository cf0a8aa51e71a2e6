"""Who sends the spans, as OTLP names it: the resource and the instrumentation scope.

Neither may say anything of the file, the process or the host: a span that is sent again, by another process or from
a copied log, must have the same content, or a backend shows it twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCOPE_NAME = "otel_bridge"

SHAPE_VERSION = "1.0.0"
"""The version of the trace shape (docs/trace-shape.md): raised only when what a log becomes changes."""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.40.0"
"""The last semantic conventions that hold all names used here: `mcp.*` and `gen_ai.*` moved to their own list after."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What OTLP calls the resource: text attributes, `service.name` among them."""

    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scope:
    """What OTLP calls the instrumentation scope; `schema_url` names the semantic conventions of its spans."""

    name: str = SCOPE_NAME
    version: str = SHAPE_VERSION
    schema_url: str = SCHEMA_URL
