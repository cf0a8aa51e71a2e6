"""Spans as Jaeger shows them, and as it should: comparable values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from otel_bridge.sessions.span import Attributes, Span, SpanKind, StatusCode
from tests.faults.spans import Key
from tests.real.jaeger import Jaeger, tags

ADDED = {"span.kind", "otel.scope.name", "otel.scope.version", "error", "internal.span.format"}
ADDED |= {"otel.status_code", "otel.status_description"}
"""Tags that Jaeger makes of what is no attribute."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One span, times in microseconds; attributes and links are in no order."""

    parent_id: int
    name: str
    kind: str
    start_us: int
    duration_us: int
    failure: str | None
    attributes: frozenset[tuple[str, object]]
    events: tuple[tuple[int, frozenset[tuple[str, object]]], ...]
    links: frozenset[Key]


def should_show(span: Span) -> Shown:
    """What Jaeger should make of a span."""
    return Shown(
        span.parent_id,
        span.name,
        SpanKind(span.kind).name.lower(),
        span.start_ns // 1000,
        (span.end_ns - span.start_ns) // 1000,
        span.status_message if span.status is StatusCode.ERROR else None,
        _attributes(span.attributes),
        tuple((one.time_ns // 1000, _attributes({"event": one.name, **one.attributes})) for one in span.events),
        frozenset((link.trace_id, link.span_id) for link in span.links),
    )


def shown(jaeger: Jaeger, trace_ids: Iterable[int]) -> dict[Key, Shown]:
    """All spans of these traces; AssertionError for a span that is there twice, and for what Jaeger warns of."""
    found: dict[Key, Shown] = {}
    for trace_id in trace_ids:
        for span in jaeger.spans(trace_id):
            key = int(span["traceID"], 16), int(span["spanID"], 16)
            assert key not in found, f"shown twice: {span}"
            assert not span.get("warnings"), span
            found[key] = _shown(span)
    return found


def _shown(span: Mapping[str, Any]) -> Shown:
    told = tags(span)
    parents = [one for one in span["references"] if one["refType"] == "CHILD_OF"]
    links = [one for one in span["references"] if one["refType"] != "CHILD_OF"]
    failed = told.get("error") is True or told.get("otel.status_code") == "ERROR"
    return Shown(
        int(parents[0]["spanID"], 16) if parents else 0,
        span["operationName"],
        told["span.kind"],
        span["startTime"],
        span["duration"],
        told.get("otel.status_description", "") if failed else None,
        frozenset((name, value) for name, value in told.items() if name not in ADDED),
        tuple((log["timestamp"], frozenset(tags(log).items())) for log in span["logs"]),
        frozenset((int(one["traceID"], 16), int(one["spanID"], 16)) for one in links),
    )


def _attributes(attributes: Attributes) -> frozenset[tuple[str, object]]:
    return frozenset(
        (name, json.dumps(value, separators=(",", ":")) if isinstance(value, tuple) else value)
        for name, value in attributes.items()
    )
