"""The spans of the recorded real logs, held against the record of the client that made the calls."""

from __future__ import annotations

import pytest

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.ids import trace_id_of_session
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span
from tests.calls import Outcome
from tests.matching import Match, call_spans, match
from tests.recordings import Recording, recordings
from tests.sessions.reading import items_of

RECORDINGS = {recording.name: recording for recording in recordings()}
LOST_LINES = ("burst", "rotate_real")
"""Recordings whose writer lost lines."""
WIDE = MappingOptions(max_value_bytes=1 << 20, max_events=1 << 20)


def spans_of(recording: Recording) -> list[Span]:
    """All spans of a recording, its end long past."""
    mapping = LogMapping(WIDE)
    spans = mapping.take(items_of(recording.log))
    return spans + mapping.end(mapping.latest_ms + 10 * WIDE.idle_timeout_ms)


def matches(recording: Recording) -> list[Match]:
    """The calls of a recording with their spans."""
    found, unmatched = match(recording.calls, call_spans(spans_of(recording)))
    assert unmatched == []
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_logged_call_is_exactly_one_span(name: str) -> None:
    """As many whole spans as `tool:call` entries, each that of one call of the client."""
    recording = RECORDINGS[name]
    logged = [item for item in items_of(recording.log) if isinstance(item, Entry) and item.kind == "tool:call"]

    assert len(logged) == sum(found.span is not None for found in matches(recording))


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_call_is_in_its_sessions_trace(name: str) -> None:
    """A call is in the trace of the session it names or made, where the log has that session; else alone."""
    recording = RECORDINGS[name]
    spans = spans_of(recording)
    roots = {span.trace_id for span in spans if span.name.startswith("debug_session")}
    sizes = {span.trace_id: 0 for span in spans}
    for span in spans:
        sizes[span.trace_id] += 1

    for found in matches(recording):
        if found.span is None:
            continue
        session_id = found.call.created_session_id or found.call.session_id
        expected = trace_id_of_session(session_id) if isinstance(session_id, str) else None
        if expected in roots:
            assert f"{expected:032x}" == found.span.trace_id
        else:
            assert sizes[int(found.span.trace_id, 16)] == 1


def test_ends_agree_with_the_clients() -> None:
    """99 % of the answered calls end within 10 ms of when the client saw the answer."""
    errors = [
        error
        for name, recording in RECORDINGS.items()
        if name not in LOST_LINES
        for error in (found.end_error_ms for found in matches(recording))
        if error is not None
    ]
    near = sum(error <= 10 for error in errors)

    assert len(errors) > 350
    assert near / len(errors) >= 0.99


@pytest.mark.parametrize(("name", "answered"), [("burst", 98), ("rotate_real", 33)])
def test_pairs_stay_right_where_the_writer_lost_lines(name: str, answered: int) -> None:
    """Every answer that is in the log, and whose call is, ends its own call; only a lost tail stays unanswered."""
    found = [one for one in matches(RECORDINGS[name]) if one.span is not None]
    errors = [error for error in (one.end_error_ms for one in found) if error is not None]

    assert answered == len(errors)
    assert answered == sum(error <= 25 for error in errors)


@pytest.mark.parametrize("name", RECORDINGS)
def test_outcomes_are_those_that_the_log_can_know(name: str) -> None:
    """An error of the client's is an error span with its text; nothing the client saw succeed is one."""
    for found in matches(RECORDINGS[name]):
        if found.span is None:
            continue
        if found.call.outcome is Outcome.RPC_ERROR:
            assert found.span.failed
            assert found.span.error in found.call.error or found.call.error in found.span.error
        elif found.call.success:
            assert not found.span.failed
        if found.call.tool == "evaluate_expression" and found.call.success is False and not found.span.unanswered:
            assert found.span.failed


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_state_and_breakpoint_entry_is_exactly_one_event(name: str) -> None:
    """Of the kind's name, at its time, somewhere in its session's trace."""
    recording = RECORDINGS[name]
    expected = sorted(
        (
            trace_id_of_session(str(item.fields["sessionId"])),
            item.time_ms,
            f"{item.kind.replace(':', '.')}.{item.fields['event']}",
        )
        for item in items_of(recording.log)
        if isinstance(item, Entry) and item.kind in ("debug:state", "debug:breakpoint")
    )
    found = sorted(
        (span.trace_id, event.time_ns // 1_000_000, event.name)
        for span in spans_of(recording)
        for event in span.events
        if event.name.startswith(("debug.state.", "debug.breakpoint."))
    )

    assert expected == found


@pytest.mark.parametrize("name", RECORDINGS)
def test_no_parent_is_missing_and_none_begins_after_its_child(name: str) -> None:
    """Each trace has one root, and every other span hangs on it."""
    spans = spans_of(RECORDINGS[name])
    roots = {span.trace_id: span for span in spans if span.parent_id == 0}

    assert len(spans) == len({(span.trace_id, span.span_id) for span in spans})
    assert sum(span.parent_id == 0 for span in spans) == len(roots)
    for span in spans:
        root = roots[span.trace_id]
        assert span is root or (span.parent_id == root.span_id and span.start_ns >= root.start_ns)


@pytest.mark.parametrize("name", RECORDINGS)
def test_reading_twice_gives_the_same_spans(name: str) -> None:
    """Nothing but the lines decides."""
    assert spans_of(RECORDINGS[name]) == spans_of(RECORDINGS[name])
