from __future__ import annotations

from hypothesis import given
from opentelemetry.trace import StatusCode as SdkStatusCode

from otel_bridge.export.readable import ReadableSpans
from otel_bridge.export.resource import SCHEMA_URL, SHAPE_VERSION, Resource, Scope
from otel_bridge.sessions.span import Span, SpanKind, StatusCode
from tests.export.spans import spans


def test_resource_and_scope() -> None:
    """The resource is what was given and nothing more: an id of the process would change a span sent again."""
    readable = ReadableSpans(Resource({"service.name": "x"}), Scope()).make(
        Span(1, 2, 0, "n", SpanKind.CLIENT, 3, 4, {})
    )

    assert dict(readable.resource.attributes) == {"service.name": "x"}
    scope = readable.instrumentation_scope
    assert scope is not None
    assert (scope.name, scope.version, scope.schema_url) == ("otel_bridge", SHAPE_VERSION, SCHEMA_URL)


@given(spans())
def test_fields(span: Span) -> None:
    """Every field is where the SDK's exporters look for it."""
    readable = ReadableSpans(Resource({}), Scope()).make(span)

    context = readable.get_span_context()
    assert context is not None
    assert (context.trace_id, context.span_id, context.is_remote) == (span.trace_id, span.span_id, False)
    assert (readable.parent.span_id if readable.parent else 0) == span.parent_id
    assert (readable.name, readable.kind.name) == (span.name, span.kind.name)
    assert (readable.start_time, readable.end_time) == (span.start_ns, span.end_ns)
    assert readable.attributes == span.attributes
    assert [(event.name, event.timestamp) for event in readable.events] == [
        (event.name, event.time_ns) for event in span.events
    ]
    assert readable.dropped_events == span.dropped_events
    assert [link.context.span_id for link in readable.links] == [link.span_id for link in span.links]
    assert [link.context.is_remote for link in readable.links] == [link.is_remote for link in span.links]
    assert (readable.parent.is_remote if readable.parent else False) == span.is_parent_remote
    assert readable.status.status_code.name == span.status.name
    assert (readable.status.description or "") == span.status_message


def test_message_without_error() -> None:
    """A status message beside OK, which the SDK does not allow, is left out without a warning."""
    span = Span(1, 2, 0, "n", SpanKind.CLIENT, 3, 4, {}, (), (), StatusCode.OK, "fine")

    status = ReadableSpans(Resource({}), Scope()).make(span).status
    assert (status.status_code, status.description) == (SdkStatusCode.OK, None)
