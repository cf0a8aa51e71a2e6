"""The doubles for programs that hand entries to a bridge."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from opentelemetry.sdk.trace.export import SpanExportResult

from otel_bridge import Bridge, Span, convert
from otel_bridge.export.readable import ReadableSpans
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.testing import CapturingExporter, session_entries
from tests.export.spans import span, spans

MAKE = ReadableSpans(Resource({"service.name": "test"}), Scope()).make


@given(spans())
def test_a_captured_span_is_the_one_that_was_exported(one: Span) -> None:
    """It comes back with every part it had."""
    exporter = CapturingExporter()
    exporter.export([MAKE(one)])

    assert repr([one]) == repr(exporter.spans)


def test_it_answers_as_it_is_told() -> None:
    """Each result once, in order; an exception is raised; what failed is not kept."""
    exporter = CapturingExporter([SpanExportResult.FAILURE, OSError("no route")])

    assert exporter.export([MAKE(span(1))]) is SpanExportResult.FAILURE
    with pytest.raises(OSError, match="no route"):
        exporter.export([MAKE(span(2))])
    assert exporter.export([MAKE(span(3))]) is SpanExportResult.SUCCESS
    assert [one.span_id for one in exporter.spans] == [3]


def test_waiting_ends_with_the_export_that_makes_it_true() -> None:
    """And gives the spans; in vain it says how many had come."""
    exporter = CapturingExporter()
    sender = threading.Thread(target=lambda: [exporter.export([MAKE(span(number))]) for number in (1, 2)])
    sender.start()
    found = exporter.wait_for(lambda spans: len(spans) == 2)
    sender.join()

    assert [one.span_id for one in found] == [1, 2]
    with pytest.raises(TimeoutError, match="not within 0 s; 2 spans had come"):
        exporter.wait_for(lambda spans: len(spans) == 3, timeout_s=0)


def test_it_remembers_that_it_was_shut_down() -> None:
    """Whoever is given an exporter has to shut it down."""
    exporter = CapturingExporter()
    before = exporter.is_shut_down
    exporter.shutdown()

    assert (before, exporter.is_shut_down, exporter.force_flush()) == (False, True, True)


@pytest.mark.parametrize("is_closed", [True, False])
def test_the_small_session_is_a_whole_one(is_closed: bool) -> None:
    """One trace, nothing partial, every call answered; its end is the one that was asked for."""
    made = list(convert(session_entries("s-1", "mine", start_ms=1_796_071_990_000, is_closed=is_closed)))

    assert len({one.trace_id for one in made}) == 1
    assert {one.attributes["debug.session.name"] for one in made} == {"mine"}
    assert not any("otel_bridge.partial" in one.attributes or "otel_bridge.outcome" in one.attributes for one in made)
    assert made[0].start_ns == 1_796_071_990_000_000_000
    assert made[-1].attributes["debug.session.end_reason"] == ("closed" if is_closed else "not_closed")


def test_the_example_works() -> None:
    """The one in the documentation of the doubles."""
    exporter = CapturingExporter()
    with Bridge(exporter) as bridge:
        for entry in session_entries():
            bridge.feed(entry)

    assert "tools/call evaluate_expression" in [one.name for one in exporter.spans]
