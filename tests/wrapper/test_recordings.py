"""Recorded logs with the frames that passed meanwhile: one span a call, and each the client's own record."""

from __future__ import annotations

from collections import Counter

import pytest

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.ids import trace_id_of_session
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span, SpanKind, StatusCode
from tests.calls import Call, Outcome
from tests.recordings import RECORDINGS, Recording, recording
from tests.sessions.reading import items_of
from tests.wrapper.recorded_frames import RUN_ID, frames_of, interleaved, mapped

NAMES = [one.name for one in RECORDINGS]
WIDE = MappingOptions(max_value_bytes=1 << 20, max_events=1 << 20)


def spans_of(source: Recording, log_delay_ms: float = 5.0) -> list[Span]:
    """The spans of a recording with its frames, to the server's end."""
    mapping = FrameMapping(WIDE, FrameOptions())
    reader = FrameReader(RUN_ID, WIDE, is_debugger=True)
    spans = mapped(mapping, reader, interleaved(frames_of(source.calls), items_of(source.log), log_delay_ms))
    return spans + mapping.over()


def by_request(spans: list[Span]) -> dict[int, Span]:
    """The spans of calls by their request's id; each must be one."""
    calls = [span for span in spans if span.name.startswith("tools/call ")]
    found = {int(str(span.attributes["jsonrpc.request.id"])): span for span in calls}
    assert len(found) == len(calls)
    return found


def has_failed(call: Call) -> bool:
    """Whether the call failed, by what the client got."""
    return call.outcome is Outcome.RPC_ERROR or call.success is False


@pytest.mark.parametrize("log_delay_ms", [0.0, 5.0, 60.0, 5_000.0])
@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_one_span_equal_to_the_clients_record(name: str, log_delay_ms: float) -> None:
    """With the very times of the frames, the outcome that the client saw, however late the log comes."""
    source = recording(name)

    found = by_request(spans_of(source, log_delay_ms))

    assert found.keys() == {call.seq for call in source.calls}
    for call in source.calls:
        span = found[call.seq]
        assert span.attributes["gen_ai.tool.name"] == call.tool
        assert (span.status is StatusCode.ERROR) == has_failed(call)
        if call.end_ms is not None and span.start_ns == round(call.start_ms * 1e6):
            assert abs(span.end_ns - max(round(call.end_ms * 1e6), span.start_ns + 1000)) <= 1
        if call.outcome is Outcome.NO_RESPONSE:
            assert span.attributes["otel_bridge.outcome"] == "unanswered"
        if call.outcome is Outcome.CLIENT_TIMEOUT:
            assert span.attributes["otel_bridge.outcome"] == "cancelled"


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_in_its_sessions_trace(name: str) -> None:
    """A call is below the root of the session that it names or made, where there is one; else it is alone."""
    source = recording(name)
    spans = spans_of(source)
    roots = {span.trace_id: span for span in spans if span.parent_id == 0 and span.kind is SpanKind.INTERNAL}
    found = by_request(spans)
    sizes = Counter(span.trace_id for span in spans)

    for call in source.calls:
        span = found[call.seq]
        session_id = call.created_session_id or call.session_id
        expected = trace_id_of_session(session_id) if isinstance(session_id, str) else None
        if expected in roots:
            assert (span.trace_id, span.parent_id) == (expected, roots[span.trace_id].span_id)
            assert span.start_ns >= roots[span.trace_id].start_ns
        else:
            assert sizes[span.trace_id] == 1


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("burst", "rotate_real")])
def test_states_and_events_are_those_of_the_log_alone(name: str) -> None:
    """The frames change nothing about the states of the program, nor which events there are."""
    source = recording(name)
    alone = LogMapping(WIDE)
    expected = alone.take(items_of(source.log)) + alone.server_gone()

    spans = spans_of(source)

    def states(spans: list[Span]) -> list[Span]:
        return [span for span in spans if span.name.startswith("debuggee ")]

    def events(spans: list[Span]) -> Counter[tuple[int, str, int]]:
        return Counter((span.trace_id, event.name, event.time_ns) for span in spans for event in span.events)

    assert [(s.span_id, s.start_ns, s.end_ns) for s in states(spans)] == [
        (s.span_id, s.start_ns, s.end_ns) for s in states(expected)
    ]
    assert events(spans) == events(expected)


@pytest.mark.parametrize("name", NAMES)
def test_lifetimes_count_what_the_client_saw(name: str) -> None:
    """The totals of a session are those of its calls' spans."""
    spans = spans_of(recording(name))

    for place, lifetime in enumerate(spans):
        if lifetime.name != "debug_session lifetime":
            continue
        calls = [s for s in spans[:place] if s.trace_id == lifetime.trace_id and s.name.startswith("tools/call ")]
        assert lifetime.attributes["debug.session.calls"] == len(calls)
        assert lifetime.attributes["debug.session.failed"] == sum(s.status is StatusCode.ERROR for s in calls)
