"""OTLP protobuf bytes -> `Span` values: the way back of what the export encodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from otel_bridge.sessions.span import AttributeValue, Span, SpanEvent, SpanKind, SpanLink, StatusCode


def decode_spans(body: bytes) -> tuple[Span, ...]:
    """The spans of one OTLP export request in protobuf form, in its order.

    Raises ValueError when `body` is no such request, or holds a value that a `Span` cannot (bytes, a map).
    """
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise ValueError(f"not an OTLP export request: {error}") from error
    return tuple(
        _span(span) for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
    )


def _span(span: trace_pb2.Span) -> Span:
    return Span(
        trace_id=int.from_bytes(span.trace_id, "big"),
        span_id=int.from_bytes(span.span_id, "big"),
        parent_id=int.from_bytes(span.parent_span_id, "big"),
        name=span.name,
        kind=SpanKind(span.kind),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=tuple(
            SpanEvent(event.name, event.time_unix_nano, _attributes(event.attributes)) for event in span.events
        ),
        links=tuple(
            SpanLink(
                int.from_bytes(link.trace_id, "big"),
                int.from_bytes(link.span_id, "big"),
                link.trace_state,
                _attributes(link.attributes),
                _is_remote(link.flags),
            )
            for link in span.links
        ),
        status=StatusCode(span.status.code),
        status_message=span.status.message,
        dropped_events=span.dropped_events_count,
        trace_state=span.trace_state,
        is_parent_remote=_is_remote(span.flags),
    )


def _is_remote(flags: int) -> bool:
    return bool(flags & trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, AttributeValue]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> AttributeValue:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "array_value":
            # Of one type by OTLP's rule for attributes; the type system cannot know that.
            return cast("tuple[str, ...]", tuple(_value(item) for item in value.array_value.values))
        case other:
            raise ValueError(f"an attribute of the kind {other or 'empty'}, which no span of ours has")
