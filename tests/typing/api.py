"""The public API as a typed program uses it: checked by mypy, never run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

import otel_bridge
from otel_bridge import (
    Bridge,
    BridgeHandler,
    BridgeStatistics,
    Capture,
    Flaw,
    Span,
    SpanEvent,
    SpanKind,
    SpanLink,
    StatusCode,
    convert,
)
from otel_bridge.testing import CapturingExporter, Receiver, session_entries

assert_type(otel_bridge.__version__, str)

# convert: lines of any form, spans one by one


def told(number: int, flaw: Flaw) -> None: ...


with Path("server.log").open("rb") as log:
    spans = convert(log, capture="full", on_malformed=told)
assert_type(spans, Iterator[Span])
convert(["{}", b"{}", {"message": "tool:call"}], capture=Capture.METADATA, idle_timeout_s=60, end_ms=1_796_071_984_000)
convert(session_entries())
convert(7)  # type: ignore[arg-type]

for span in spans:
    assert_type(span.trace_id, int)
    assert_type(span.name, str)
    assert_type(span.kind, SpanKind)
    assert_type(span.start_ns, int)
    assert_type(span.events, tuple[SpanEvent, ...])
    assert_type(span.links, tuple[SpanLink, ...])
    assert_type(span.status, StatusCode)

# Bridge: an exporter or a processor of the SDK, or OTLP

with Bridge() as bridge:
    assert_type(bridge, Bridge)
    bridge.feed({"message": "tool:call", "tool": "step_over"})
    bridge.feed(b"{}")
    bridge.feed("{}")
    bridge.feed_record(logging.makeLogRecord({}))
    assert_type(bridge.flush(timeout_s=1), bool)
    assert_type(bridge.statistics(), BridgeStatistics)
    assert_type(bridge.close(timeout_s=1), BridgeStatistics)

Bridge(ConsoleSpanExporter(), capture="metadata", service_name="mine", max_queued_entries=100)
Bridge(BatchSpanProcessor(ConsoleSpanExporter()))
Bridge(endpoint="http://localhost:4318", protocol="grpc", headers={"x-tenant": "a"}, idle_timeout_s=60.0)
Bridge("otlp")  # type: ignore[arg-type]
bridge.feed(7)  # type: ignore[arg-type]
assert_type(bridge.statistics().delivered, int)

# BridgeHandler: the same options, a factory, or a bridge

handler: logging.Handler = BridgeHandler(level="INFO", capture=Capture.FULL, endpoint="http://localhost:4318")
assert_type(BridgeHandler(ConsoleSpanExporter).bridge, Bridge)
BridgeHandler({"()": ConsoleSpanExporter, "service_name": "mine"})
BridgeHandler(bridge=bridge)
BridgeHandler(captures="full")  # type: ignore[call-arg]

# the doubles

exporter = CapturingExporter([OSError("no route")])
assert_type(exporter.spans, list[Span])
assert_type(exporter.wait_for(lambda spans: len(spans) == 3), list[Span])
Bridge(exporter)
with Receiver() as receiver:
    assert_type(receiver.spans, list[Span])
