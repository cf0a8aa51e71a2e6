"""Spans as the SDK's `ReadableSpan`, for a `SpanExporter` that a host program brings along.

Importing this module imports the SDK; nothing on the way of the bridge's own exports needs it.
"""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, TraceFlags, TraceState
from opentelemetry.trace import SpanKind as SdkSpanKind
from opentelemetry.trace import StatusCode as SdkStatusCode

from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.span import Span, SpanKind, StatusCode

_KINDS = {
    SpanKind.INTERNAL: SdkSpanKind.INTERNAL,
    SpanKind.SERVER: SdkSpanKind.SERVER,
    SpanKind.CLIENT: SdkSpanKind.CLIENT,
}
_CODES = {
    StatusCode.UNSET: SdkStatusCode.UNSET,
    StatusCode.OK: SdkStatusCode.OK,
    StatusCode.ERROR: SdkStatusCode.ERROR,
}


def _context(trace_id: int, span_id: int, trace_state: str = "", *, is_remote: bool = False) -> SpanContext:
    state = TraceState.from_header([trace_state]) if trace_state else None
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED), state)


class ReadableSpans:
    """Makes `ReadableSpan`s that share one resource and one scope."""

    def __init__(self, resource: Resource, scope: Scope) -> None:
        # Not Resource.create(), which adds an instance id that is another one in each process.
        self._resource = SdkResource(dict(resource.attributes))
        self._scope = InstrumentationScope(scope.name, scope.version, scope.schema_url)

    def make(self, span: Span) -> ReadableSpan:
        """The same span as the SDK holds it; a status message is kept only where the SDK allows one, with ERROR."""
        events: BoundedList[Event] = BoundedList(None)
        events.extend([Event(event.name, event.attributes, event.time_ns) for event in span.events])
        events.dropped = span.dropped_events
        message = span.status_message if span.status is StatusCode.ERROR else None
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id, span.trace_state),
            parent=_context(span.trace_id, span.parent_id, is_remote=span.is_parent_remote) if span.parent_id else None,
            resource=self._resource,
            attributes=span.attributes,
            events=events,
            links=[
                Link(_context(link.trace_id, link.span_id, link.trace_state, is_remote=link.is_remote), link.attributes)
                for link in span.links
            ],
            kind=_KINDS[span.kind],
            status=Status(_CODES[span.status], message or None),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )
