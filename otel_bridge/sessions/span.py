"""What the mapping gives out: finished spans, as plain values.

A span here is final: it never changes after it was given out (see docs/trace-shape.md). Values are what OTLP can carry:
text, booleans, integers of 64 bits, floats, and lists of one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from otel_bridge.values import value

AttributeValue = str | bool | int | float | tuple[str, ...] | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]
Attributes = Mapping[str, AttributeValue]


class SpanKind(IntEnum):
    """The kinds of the OTLP protocol, with its numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class StatusCode(IntEnum):
    """The status codes of the OTLP protocol, with its numbers."""

    UNSET = 0
    OK = 1
    ERROR = 2


@value(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span; `time_ns` is Unix time in nanoseconds."""

    name: str
    time_ns: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A pointer to a span of another trace: ids as the integers of their 128 and 64 bits, `trace_state` as W3C text.

    `is_remote` says that the span is another process's: it came in a trace context.
    """

    trace_id: int
    span_id: int
    trace_state: str = ""
    attributes: Attributes = field(default_factory=dict)
    is_remote: bool = False


@value(frozen=True, slots=True)
class Span:
    """A finished span. Ids are integers of 128 and 64 bits; times are Unix nanoseconds; `parent_id` 0 means a root.

    `is_parent_remote` says that the parent is another process's.
    """

    trace_id: int
    span_id: int
    parent_id: int
    name: str
    kind: SpanKind
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    status: StatusCode = StatusCode.UNSET
    status_message: str = ""
    dropped_events: int = 0
    trace_state: str = ""
    is_parent_remote: bool = False
