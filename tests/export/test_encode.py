from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from otel_bridge.export.encode import RequestEncoder, SpanEncoder, request_body
from otel_bridge.export.readable import ReadableSpans
from otel_bridge.export.resource import SCHEMA_URL, Resource, Scope
from otel_bridge.sessions.span import AttributeValue, Span, SpanKind, StatusCode
from tests.export.spans import KEYS, TEXT, span, spans

RESOURCE = Resource({"service.name": "mcp-debugger", "team": "a"})


def by_sdk(some: list[Span], resource: Resource, scope: Scope) -> ExportTraceServiceRequest:
    """What the SDK's encoder makes of the spans, with the one field that it leaves out: a link's trace state."""
    readable = ReadableSpans(resource, scope)
    request = encode_spans([readable.make(one) for one in some])
    for one, proto in zip(some, request.resource_spans[0].scope_spans[0].spans, strict=True):
        for link, proto_link in zip(one.links, proto.links, strict=True):
            assert proto_link.trace_state == ""
            proto_link.trace_state = link.trace_state
    return request


def comparable(request: ExportTraceServiceRequest) -> bytes:
    """A message as canonical bytes, because NaN makes equal messages unequal."""
    return request.SerializeToString(deterministic=True)


@given(
    st.lists(spans(), min_size=1, max_size=4),
    st.dictionaries(KEYS, TEXT, max_size=3),
    st.builds(Scope, TEXT, TEXT, TEXT),
)
def test_equal_to_the_sdk(some: list[Span], attributes: dict[str, str], scope: Scope) -> None:
    """A request decodes to exactly the messages that the SDK's encoder makes, for every type, event and link."""
    resource = Resource(attributes)
    encoder = SpanEncoder()
    encoded = [encoder.encode(one) for one in some]

    ours = ExportTraceServiceRequest.FromString(request_body(encoded, resource, scope))

    assert comparable(by_sdk(some, resource, scope)) == comparable(ours)


@given(st.lists(spans(), min_size=2, max_size=4))
def test_remembering_changes_nothing(some: list[Span]) -> None:
    """A span has the same bytes whatever the encoder met before."""
    encoder = SpanEncoder()
    for one in some:
        encoder.encode(one)

    assert [SpanEncoder().encode(one) for one in some] == [encoder.encode(one) for one in some]


def test_look_alikes_keep_their_types() -> None:
    """True, 1 and 1.0 stay what they are, though Python holds them for equal."""
    encoder = SpanEncoder()

    kinds = []
    for value in (True, 1, 1.0, "1"):
        message = ProtoSpan.FromString(encoder.encode(Span(1, 2, 0, "x", SpanKind.INTERNAL, 3, 4, {"k": value})))
        kinds.append(message.attributes[0].value.WhichOneof("value"))

    assert kinds == ["bool_value", "int_value", "double_value", "string_value"]


def test_more_attributes_than_are_remembered() -> None:
    """Memory is bounded: after any number of different attributes the next is still right."""
    encoder = SpanEncoder()
    for number in range(10_000):
        encoder.encode(Span(1, 2, 0, f"n{number}", SpanKind.INTERNAL, 3, 4, {f"k{number}": f"v{number}"}))

    assert all(len(memory) <= 4096 for memory in (encoder._texts, encoder._keys, encoder._names))
    message = ProtoSpan.FromString(encoder.encode(Span(1, 2, 0, "x", SpanKind.INTERNAL, 3, 4, {"k1": "v1"})))
    assert (message.attributes[0].key, message.attributes[0].value.string_value) == ("k1", "v1")


def test_what_otlp_cannot_hold() -> None:
    """An integer beyond 64 bits becomes text and a lone surrogate U+FFFD; nothing raises and nothing is left out."""
    attributes: dict[str, AttributeValue] = {"big": 1 << 63, "small": -(1 << 63) - 1, "text": "a\ud800b\U0001f600"}

    message = ProtoSpan.FromString(SpanEncoder().encode(Span(1, 2, 0, "\udfff", SpanKind.INTERNAL, 3, 4, attributes)))

    assert message.name == "\ufffd"
    assert [str(1 << 63), str(-(1 << 63) - 1), "a\ufffdb\U0001f600"] == [
        attribute.value.string_value for attribute in message.attributes
    ]


def test_request_frame() -> None:
    """A request has one resource without a schema and one scope with the version of the shape and its schema."""
    request = ExportTraceServiceRequest.FromString(
        RequestEncoder(RESOURCE, Scope()).encode([SpanEncoder().encode(span(n)) for n in range(1, 400)])
    )

    (resource_spans,) = request.resource_spans
    (scope_spans,) = resource_spans.scope_spans
    assert {attribute.key: attribute.value.string_value for attribute in resource_spans.resource.attributes} == {
        "service.name": "mcp-debugger",
        "team": "a",
    }
    assert resource_spans.schema_url == ""
    assert (
        scope_spans.scope.name,
        scope_spans.scope.version,
        scope_spans.schema_url,
    ) == ("otel_bridge", "1.0.0", SCHEMA_URL)
    assert list(range(1, 400)) == [int.from_bytes(message.span_id) for message in scope_spans.spans]


def test_status_message_without_error_is_kept() -> None:
    """A status message that the SDK would drop beside OK is sent as it is."""
    message = ProtoSpan.FromString(
        SpanEncoder().encode(Span(1, 2, 0, "x", SpanKind.INTERNAL, 3, 4, {}, (), (), StatusCode.OK, "fine"))
    )

    assert message.status.message == "fine"
