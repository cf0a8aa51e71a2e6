"""Spans on standard output, one a line, as JSON that `jq` and people can read; for `--exporter console`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import BinaryIO

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from otel_bridge.export.reply import HttpReply, Reply
from otel_bridge.sessions.span import SpanKind, StatusCode
from otel_bridge.view.escape import shows_itself


class ConsoleTransport:
    """Writes requests to a stream instead of sending them; see `otel_bridge.export.transport.Transport`.

    Keys and their order are stable; ids are hex digits, times Unix nanoseconds, and what is empty is left out.
    """

    endpoint = "standard output"
    proxy = ""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream

    def send(self, body: bytes) -> Reply:
        """Write the spans. Raises OSError when the stream is closed or full, BrokenPipeError when nobody reads it."""
        request = ExportTraceServiceRequest.FromString(body)
        for resource_spans in request.resource_spans:
            resource = _attributes(resource_spans.resource.attributes)
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    self._stream.write(_line(_plain(span, resource)))
        self._stream.flush()
        return HttpReply(200)

    def close(self) -> None:
        """Leave the stream open: it is the process's."""


_SUSPECTS = re.compile("[^\x00-~]")


def _line(values: dict[str, object]) -> bytes:
    """JSON allows any character as it is; a terminal obeys some, and some readers take others for a line's end."""
    text = orjson.dumps(values).decode()
    return _SUSPECTS.sub(_unless_it_shows, text).encode() + b"\n"


def _unless_it_shows(found: re.Match[str]) -> str:
    return found[0] if shows_itself(found[0]) else json.dumps(found[0])[1:-1]


def _plain(span: ProtoSpan, resource: dict[str, object]) -> dict[str, object]:
    values: dict[str, object] = {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_id": span.parent_span_id.hex(),
        "trace_state": span.trace_state,
        "name": span.name,
        "kind": _name(SpanKind, span.kind),
        "start_ns": span.start_time_unix_nano,
        "end_ns": span.end_time_unix_nano,
        "status": _name(StatusCode, span.status.code),
        "status_message": span.status.message,
        "attributes": _attributes(span.attributes),
        "events": [
            {"name": event.name, "time_ns": event.time_unix_nano, "attributes": _attributes(event.attributes)}
            for event in span.events
        ],
        "dropped_events": span.dropped_events_count,
        "links": [
            {
                "trace_id": link.trace_id.hex(),
                "span_id": link.span_id.hex(),
                "trace_state": link.trace_state,
                "attributes": _attributes(link.attributes),
            }
            for link in span.links
        ],
        "resource": resource,
    }
    return {key: value for key, value in values.items() if value not in ("", 0, [], {})}


def _name(names: type[IntEnum], number: int) -> str:
    """The name of a number; a dead letter that was put together elsewhere may have one that has none."""
    try:
        return names(number).name
    except ValueError:
        return str(number) if number else "UNSPECIFIED"


def _attributes(attributes: Iterable[KeyValue]) -> dict[str, object]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "double_value" and value.double_value in (float("inf"), float("-inf")):
        return str(value.double_value)  # JSON has no word for it; NaN becomes null
    plain: object = getattr(value, kind)
    return plain
