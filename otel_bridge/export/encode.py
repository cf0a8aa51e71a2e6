"""Spans as the bytes of OTLP's protobuf messages, without a message object for each.

The SDK's encoder builds five objects a span on the way; this one writes the fields of `opentelemetry/proto/trace/v1`
in the order of their numbers and remembers the bytes of attributes that come again and again (session id, tool name).
The tests decode both and compare. One thing is here that the SDK's encoder leaves out: a link's `trace_state`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NewType, TypeVar

from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.span import Attributes, AttributeValue, Span, SpanEvent, SpanLink

EncodedSpan = NewType("EncodedSpan", bytes)
"""One `opentelemetry.proto.trace.v1.Span` message."""

_Key = TypeVar("_Key")

# `flags` of a span and of a link (`SpanFlags`): bit 8 says that bit 9 is known, bit 9 that the other span, which is the
# parent or the link's, is another process's. By `is_remote`, which is 0 or 1.
_FLAGS: Final = [struct.pack("<I", flags) for flags in (0x100, 0x300)]
_SPAN_FLAGS: Final = [b"\x85\x01" + flags for flags in _FLAGS]
_NO_STATUS_AND_FLAGS: Final = [b"\x7a\x00" + flags for flags in _SPAN_FLAGS]
_LINK_FLAGS: Final = [b"\x35" + flags for flags in _FLAGS]

# The tags of `attributes` in the messages that have some.
_OF_SPAN, _OF_EVENT, _OF_LINK = b"\x4a", b"\x1a", b"\x22"

_REMEMBERED: Final = 4096
_REMEMBERED_CHARS: Final = 64
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1

_KIND_AND_TIMES: Final = struct.Struct("<BBBQBQ").pack
_fixed64: Final = struct.Struct("<Q").pack
_double: Final = struct.Struct("<d").pack


def _varint(number: int) -> bytes:
    """`number` (0 or more) in base 128, the lowest seven bits first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL_VARINTS: Final = tuple(_varint(number) for number in range(2560))


def _size(size: int) -> bytes:
    """The length of a field, or any other number, as a varint."""
    return _SMALL_VARINTS[size] if size < 2560 else _varint(size)


def _field(tag: bytes, data: bytes) -> bytes:
    """A length-delimited field: text, bytes or a message."""
    return tag + _size(len(data)) + data


def _utf8(text: str) -> bytes:
    """`text` as UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _any_value(value: AttributeValue) -> bytes:
    """An `AnyValue` message; an integer beyond 64 bits, which OTLP cannot hold, becomes text."""
    if isinstance(value, str):
        return _field(b"\x0a", _utf8(value))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        if 0 <= value <= _INT64_MAX:
            return b"\x18" + _size(value)
        if _INT64_MIN <= value < 0:
            return b"\x18" + _varint(value + (1 << 64))
        return _any_value(str(value))
    if isinstance(value, float):
        return b"\x21" + _double(value)
    return _field(b"\x2a", b"".join([_field(b"\x0a", _any_value(item)) for item in value]))


class SpanEncoder:
    """Turns spans into bytes. It remembers names and short texts, at most 4,096 of each; keep one for each thread."""

    def __init__(self) -> None:
        self._keys: dict[str, bytes] = {}
        self._names: dict[str, bytes] = {}
        # Whole attributes of spans, of events and of links. Only texts: True, 1 and 1.0 are one key of a dictionary.
        self._texts: dict[bytes, dict[tuple[str, AttributeValue], bytes]] = {_OF_SPAN: {}, _OF_EVENT: {}, _OF_LINK: {}}

    def encode(self, span: Span) -> EncodedSpan:
        """The span as a `Span` message. Never raises for a value that `Span` allows."""
        parts = [b"\x0a\x10", span.trace_id.to_bytes(16, "big"), b"\x12\x08", span.span_id.to_bytes(8, "big")]
        if span.trace_state:
            parts.append(_field(b"\x1a", _utf8(span.trace_state)))
        if span.parent_id:
            parts += (b"\x22\x08", span.parent_id.to_bytes(8, "big"))
        name = self._names.get(span.name)
        if name is None:
            name = _remember(self._names, span.name, _field(b"\x2a", _utf8(span.name)))
        parts += (name, _KIND_AND_TIMES(0x30, span.kind, 0x39, span.start_ns, 0x41, span.end_ns))
        self._add_attributes(parts, _OF_SPAN, span.attributes)
        for event in span.events:
            parts.append(_field(b"\x5a", self._event(event)))
        if span.dropped_events:
            parts += (b"\x60", _varint(span.dropped_events))
        for link in span.links:
            parts.append(_field(b"\x6a", self._link(link)))
        if span.status or span.status_message:
            status = _field(b"\x12", _utf8(span.status_message)) if span.status_message else b""
            if span.status:
                status += b"\x18" + _SMALL_VARINTS[span.status]
            parts += (b"\x7a", _size(len(status)), status, _SPAN_FLAGS[span.is_parent_remote])
        else:
            parts.append(_NO_STATUS_AND_FLAGS[span.is_parent_remote])
        return EncodedSpan(b"".join(parts))

    def _event(self, event: SpanEvent) -> bytes:
        parts = [b"\x09", _fixed64(event.time_ns), _field(b"\x12", _utf8(event.name))]
        self._add_attributes(parts, _OF_EVENT, event.attributes)
        return b"".join(parts)

    def _link(self, link: SpanLink) -> bytes:
        parts = [b"\x0a\x10", link.trace_id.to_bytes(16, "big"), b"\x12\x08", link.span_id.to_bytes(8, "big")]
        if link.trace_state:
            parts.append(_field(b"\x1a", _utf8(link.trace_state)))
        self._add_attributes(parts, _OF_LINK, link.attributes)
        parts.append(_LINK_FLAGS[link.is_remote])
        return b"".join(parts)

    def _add_attributes(self, parts: list[bytes], tag: bytes, attributes: Attributes) -> None:
        """Append each attribute as a `KeyValue` field with the `tag` of the message that holds it."""
        texts = self._texts[tag]
        for attribute in attributes.items():
            encoded = texts.get(attribute)
            if encoded is None:
                key, value = attribute
                encoded = tag + self._key_value(key, value)
                if type(value) is str and len(value) <= _REMEMBERED_CHARS:
                    _remember(texts, attribute, encoded)
            parts.append(encoded)

    def _key_value(self, key: str, value: AttributeValue) -> bytes:
        """A `KeyValue` message with its length in front."""
        encoded_key = self._keys.get(key)
        if encoded_key is None:
            encoded_key = _remember(self._keys, key, _field(b"\x0a", _utf8(key)) + b"\x12")
        encoded = _any_value(value)
        size = _size(len(encoded))
        message_size = len(encoded_key) + len(size) + len(encoded)
        return b"".join((_size(message_size), encoded_key, size, encoded))


def _remember(memory: dict[_Key, bytes], key: _Key, encoded: bytes) -> bytes:
    if len(memory) >= _REMEMBERED:
        memory.clear()
    memory[key] = encoded
    return encoded


class RequestEncoder:
    """Puts encoded spans into an `ExportTraceServiceRequest` of one resource and one scope."""

    def __init__(self, resource: Resource, scope: Scope) -> None:
        self.resource = resource
        self.scope = scope
        attributes = [
            _field(b"\x0a", _field(b"\x0a", _utf8(key)) + _field(b"\x12", _any_value(value)))
            for key, value in resource.attributes.items()
        ]
        self._resource = _field(b"\x0a", b"".join(attributes))
        message = _field(b"\x0a", _utf8(scope.name))
        if scope.version:
            message += _field(b"\x12", _utf8(scope.version))
        self._scope = _field(b"\x0a", message)
        self._schema_url = _field(b"\x1a", _utf8(scope.schema_url)) if scope.schema_url else b""

    def encode(self, spans: Sequence[EncodedSpan]) -> bytes:
        """The request as bytes, before any compression."""
        parts = [self._scope]
        for span in spans:
            parts += (b"\x12", _size(len(span)), span)
        parts.append(self._schema_url)
        scope_spans = b"".join(parts)
        size = _size(len(scope_spans))
        inner = len(self._resource) + 1 + len(size) + len(scope_spans)
        return b"".join((b"\x0a", _varint(inner), self._resource, b"\x12", size, scope_spans))


def request_body(spans: Iterable[EncodedSpan], resource: Resource, scope: Scope) -> bytes:
    """An `ExportTraceServiceRequest` as bytes; for more than one request keep a `RequestEncoder`."""
    return RequestEncoder(resource, scope).encode(tuple(spans))
