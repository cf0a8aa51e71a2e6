"""OTLP/JSON, the form of OTLP for files and people: ids are hex digits, enums numbers, 64-bit numbers text.

Protobuf's own JSON form differs in the ids alone, which it writes in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_IDS = ("traceId", "spanId", "parentSpanId")


def from_request(body: bytes) -> dict[str, Any]:
    """The bytes of an `ExportTraceServiceRequest` as OTLP/JSON."""
    message = ExportTraceServiceRequest.FromString(body)
    request: dict[str, Any] = json_format.MessageToDict(message, use_integers_for_enums=True)
    _change_ids(request, lambda text: base64.b64decode(text).hex())
    return request


def to_request(request: dict[str, Any]) -> bytes:
    """OTLP/JSON as the bytes of an `ExportTraceServiceRequest`; raises ValueError if it is none. Changes `request`."""
    try:
        _change_ids(request, lambda text: base64.b64encode(bytes.fromhex(text)).decode())
        return json_format.ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
    except (json_format.ParseError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _change_ids(request: dict[str, Any], change: Callable[[str], str]) -> None:
    for span in spans_of(request):
        for holder in (span, *span.get("links", ())):
            for key in _IDS:
                if key in holder:
                    holder[key] = change(holder[key])


def spans_of(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every span of a request in OTLP/JSON."""
    for resource_spans in request.get("resourceSpans", ()):
        for scope_spans in resource_spans.get("scopeSpans", ()):
            yield from scope_spans.get("spans", ())
