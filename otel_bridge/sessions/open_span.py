"""A span that has begun and not ended: what is known of it so far, in a form that can be saved as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from otel_bridge.entries.times import NS_PER_MS
from otel_bridge.sessions.attributes import EVENTS_NAME, AttributeSet, Failure
from otel_bridge.sessions.ids import derived_span_id
from otel_bridge.sessions.saved_values import integer_of, list_of
from otel_bridge.sessions.span import Attributes, AttributeValue, Span, SpanEvent, SpanKind, StatusCode

SHORTEST_NS: Final = 1_000
"""No span but the root is shorter: Jaeger warns when a span ends where it starts."""


@dataclass(slots=True)
class OpenSpan:
    """A begun span. `span_id` is a 64-bit integer, `start_ms` Unix milliseconds."""

    span_id: int
    name: str
    kind: SpanKind
    start_ms: int
    attributes: AttributeSet
    events: list[SpanEvent] = field(default_factory=list)
    beyond: list[SpanEvent] | None = None
    """Events over the limit that no further span has taken yet. None rather than empty: there are many open spans."""
    spilled: int = 0
    """How many spans of further events there are."""

    def add(self, event: SpanEvent, max_events: int) -> list[SpanEvent]:
        """Adds an event; gives back a full set of events over the limit, for a span of their own."""
        if len(self.events) < max_events:
            self.events.append(event)
            return []
        if self.beyond is None:
            self.beyond = []
        self.beyond.append(event)
        if len(self.beyond) < max_events:
            return []
        full, self.beyond = self.beyond, None
        self.spilled += 1
        return full

    def events_span_id(self) -> int:
        """The id of the span that takes the events given back last."""
        return derived_span_id(self.span_id, "events", str(self.spilled))

    def finish(
        self,
        trace_id: int,
        parent_id: int,
        common: Attributes,
        *,
        not_before_ns: int,
        end_ns: int,
        failure: Failure | None,
    ) -> list[Span]:
        """The finished span, and one more for events that were still over the limit.

        `common` goes on every span of the session; the start is raised to `not_before_ns`, the root's.
        """
        start_ns = max(self.start_ms * NS_PER_MS, not_before_ns)
        attributes: dict[str, AttributeValue] = {**common, **self.attributes}
        status, message = StatusCode.UNSET, ""
        if failure:
            status, message = StatusCode.ERROR, failure.message
            attributes["error.type"] = failure.error_type
        span = Span(  # by position: with so many names it takes twice as long
            trace_id,
            self.span_id,
            parent_id,
            self.name,
            self.kind,
            start_ns,
            max(end_ns, start_ns + SHORTEST_NS),
            attributes,
            tuple(self.events),
            (),
            status,
            message,
        )
        if not self.beyond:
            return [span]
        self.spilled += 1
        further, self.beyond = self.beyond, None
        # a call without a session is the root of its trace: what hangs on it must not be parentless
        return [
            span,
            events_span(trace_id, self.events_span_id(), parent_id or self.span_id, common, further, not_before_ns),
        ]

    def to_json(self) -> dict[str, object]:
        """The span so far, as JSON values."""
        return {
            "span_id": f"{self.span_id:016x}",
            "name": self.name,
            "kind": int(self.kind),
            "start_ms": self.start_ms,
            "attributes": dict(self.attributes),
            "events": [event_to_json(event) for event in self.events],
            "beyond": [event_to_json(event) for event in self.beyond or ()],
            "spilled": self.spilled,
        }

    @classmethod
    def from_json(cls, saved: dict[str, object]) -> OpenSpan:
        """The inverse of `to_json`. Raises KeyError or TypeError for anything else."""
        return cls(
            span_id=int(str(saved["span_id"]), 16),
            name=str(saved["name"]),
            kind=SpanKind(integer_of(saved["kind"])),
            start_ms=integer_of(saved["start_ms"]),
            attributes=_attributes(saved["attributes"]),
            events=[event_from_json(event) for event in list_of(saved["events"])],
            beyond=[event_from_json(event) for event in list_of(saved["beyond"])] or None,
            spilled=integer_of(saved["spilled"]),
        )


def events_span(
    trace_id: int, span_id: int, parent_id: int, common: Attributes, events: list[SpanEvent], not_before_ns: int
) -> Span:
    """A span of 1 µs that only carries events, at the time of the first."""
    start_ns = max(events[0].time_ns, not_before_ns)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=EVENTS_NAME,
        kind=SpanKind.INTERNAL,
        start_ns=start_ns,
        end_ns=start_ns + SHORTEST_NS,
        attributes=dict(common),
        events=tuple(events),
    )


def snapshot_of(span: Span, *moment: str) -> Span:
    """The span as it is at a moment that will pass: an id of its own, and marked, so that it contradicts nothing."""
    return replace(
        span,
        span_id=derived_span_id(span.span_id, "snapshot", *moment),
        attributes={**span.attributes, "otel_bridge.snapshot": True},
    )


def event_to_json(event: SpanEvent) -> list[object]:
    """A span event as JSON values."""
    return [event.name, event.time_ns, dict(event.attributes)]


def event_from_json(saved: object) -> SpanEvent:
    """The inverse of `event_to_json`."""
    name, time_ns, attributes = list_of(saved)
    return SpanEvent(str(name), integer_of(time_ns), _attributes(attributes))


def _attributes(saved: object) -> AttributeSet:
    if not isinstance(saved, dict):
        raise TypeError(f"attributes are no object: {type(saved).__name__}")
    return AttributeSet({name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()})
