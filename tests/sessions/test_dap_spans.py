"""DAP traces of the recorded sessions: each pair is a span below the call that it happened in."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from otel_bridge.entries.dap import DapMessage, DapReader
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import restore, take_changes
from otel_bridge.sessions.span import Span, SpanKind, StatusCode
from tests.recordings import Recording, recordings
from tests.sessions.reading import items_of

ITEMS = {recording.name: items_of(recording.log) for recording in recordings() if recording.dap_traces}
RECORDINGS = {recording.name: recording for recording in recordings() if recording.dap_traces}
LONG_AFTER_MS = 4_000_000_000_000


@cache
def messages(recording: Recording) -> list[tuple[str, DapMessage]]:
    """The messages of all traces with their session, oldest trace first."""
    found = []
    for trace in recording.dap_traces:
        for item in DapReader(trace.session_id).feed(trace.data):
            assert isinstance(item, DapMessage)
            found.append((trace.session_id, item))
    return found


def traced(recording: Recording, options: MappingOptions | None = None) -> list[Span]:
    """The spans of log and traces, the log first."""
    mapping = LogMapping(options or MappingOptions())
    mapping.dap_calls_kept = 1 << 30
    spans = mapping.take(ITEMS[recording.name])
    for session_id, message in messages(recording):
        spans += mapping.take_dap(session_id, [message])
    spans += mapping.end(LONG_AFTER_MS)
    return spans + mapping.close_dap(list(mapping.dap))


def dap(spans: list[Span]) -> list[Span]:
    """The spans of DAP pairs."""
    return [span for span in spans if span.name.startswith("dap ")]


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_pair_is_one_client_span_inside_its_parent(name: str) -> None:
    """None lies outside its parent's time, but for the root, which is an instant."""
    recording = RECORDINGS[name]
    spans = traced(recording)
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    asked = sum(message.payload["type"] == "request" for _, message in messages(recording))

    assert len(spans) == len(by_id)
    assert len(dap(spans)) == asked
    for span in dap(spans):
        parent = by_id[span.trace_id, span.parent_id]
        assert span.kind is SpanKind.CLIENT
        assert span.start_ns >= parent.start_ns
        assert parent.parent_id == 0 or span.end_ns <= parent.end_ns


def test_where_the_pairs_of_all_recordings_are_placed() -> None:
    """Most pairs are below a call; what is below the root happened between calls."""
    below: Counter[str] = Counter()
    for recording in RECORDINGS.values():
        spans = traced(recording)
        by_id = {(span.trace_id, span.span_id): span for span in spans}
        for span in dap(spans):
            answered = "otel_bridge.outcome" not in span.attributes
            place = "root" if by_id[span.trace_id, span.parent_id].parent_id == 0 else "call"
            below[place if answered else "unanswered"] += 1

    assert below == {"call": 385, "root": 20}


def test_an_evaluation_is_below_the_call_with_its_expression() -> None:
    """Of twelve evaluations in flight at once each contains the requests of those before it."""
    spans = traced(RECORDINGS["concurrent"], MappingOptions(capture=Capture.FULL))
    by_id = {span.span_id: span for span in spans}
    evaluations = [span for span in dap(spans) if span.name == "dap evaluate"]

    assert len(evaluations) > 20
    for span in evaluations:
        asked = json.loads(str(span.attributes["dap.arguments"]))["expression"]
        parent = by_id[span.parent_id]
        if parent.parent_id == 0:
            continue  # cancelled by the close: answered after its call was
        called = json.loads(str(parent.attributes.get("gen_ai.tool.call.arguments", "{}")))
        assert called.get("expression") == asked


def test_no_body_is_sent_below_full() -> None:
    """Bodies hold values; a failed request tells its message from `arguments` on."""
    metadata = dap(traced(RECORDINGS["errors"], MappingOptions(capture=Capture.METADATA)))
    default = dap(traced(RECORDINGS["errors"]))
    full = dap(traced(RECORDINGS["errors"], MappingOptions(capture=Capture.FULL)))

    assert {"dap.command", "dap.seq", "error.type"} >= {
        name for span in default for name in span.attributes if not name.startswith(("debug.", "otel_bridge."))
    }
    assert any("dap.body" in span.attributes for span in full)
    failed = [span.status_message for span in default if span.status is StatusCode.ERROR]
    assert "Wrong ID sent from the client: 99999" in failed
    assert {span.status_message for span in metadata} == {""}
    assert [span.span_id for span in metadata] == [span.span_id for span in default] == [span.span_id for span in full]


def message(at_ms: int, direction: str, **payload: object) -> DapMessage:
    """A message by hand, after the recording's session was created."""
    return DapMessage(1_796_071_986_000 + at_ms, direction, payload)


def hand_traced(messages_of_runs: list[tuple[str, DapMessage]], capture: Capture = Capture.FULL) -> list[Span]:
    """The DAP spans and output of messages by hand, each of a named run, in the session of a recording."""
    session_id = "806a0589-7b86-490d-9928-679ab71012c1"
    mapping = LogMapping(MappingOptions(capture=capture))
    mapping.dap_calls_kept = 1_000
    mapping.take(ITEMS["happy"])
    spans = [span for run, one in messages_of_runs for span in mapping.take_dap(session_id, [one], run)]
    return spans + mapping.close_dap([session_id])


def test_a_result_is_redacted_by_what_was_asked_for() -> None:
    """Only the request tells that the value is a secret."""
    spans = hand_traced(
        [
            ("", message(0, "out", type="request", seq=1, command="evaluate", arguments={"expression": "password"})),
            ("", message(1, "in", type="response", request_seq=1, success=True, body={"result": "'hunter2'"})),
            ("", message(2, "out", type="request", seq=2, command="setVariable", arguments={"name": "api_key"})),
            ("", message(3, "in", type="response", request_seq=2, success=True, body={"value": "'hunter2'"})),
        ]
    )

    assert [span.name for span in spans] == ["dap evaluate", "dap setVariable"]
    assert "hunter2" not in repr(spans)


def test_output_of_one_millisecond_is_told_apart() -> None:
    """Each span of output has an id of its own, and carries all of its events."""
    flood = [
        ("", message(0, "in", type="event", event="output", body={"category": "stdout", "output": str(number)}))
        for number in range(300)
    ]
    spans = hand_traced(flood)

    assert len({span.span_id for span in spans}) == len(spans) == 3
    assert sum(len(span.events) for span in spans) == 300


def test_runs_of_one_session_keep_their_requests_apart() -> None:
    """Each run counts its requests anew, and one may be read beside the other."""
    first, second = (
        message(at_ms, "out", type="request", seq=5, command="launch", arguments={}) for at_ms in (0, 1_000)
    )
    answer = message(1_200, "in", type="response", request_seq=5, success=True)
    spans = hand_traced([("run-1", first), ("run-2", second), ("run-2", answer)])

    told = sorted((span.end_ns - span.start_ns, span.attributes.get("otel_bridge.outcome")) for span in spans)
    assert told == [(1_000, "unanswered"), (200_000_000, None)]


@pytest.mark.parametrize("name", ["happy", "concurrent", "kill9", "output"])
@given(data=st.data())
@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink))
def test_log_and_trace_may_come_in_any_order(name: str, data: st.DataObject) -> None:
    """Interleaved at random, with restarts in between, every pair gets the parent that a replay gives it."""
    recording = RECORDINGS[name]
    expected = {(span.trace_id, span.span_id): span for span in traced(recording)}
    mapping, spans = LogMapping(MappingOptions()), list[Span]()
    mapping.dap_calls_kept = 200
    log, trace = ITEMS[name], messages(recording)
    created = max(number for number, item in enumerate(log) if getattr(item, "kind", "") == "session:created") + 1
    spans += mapping.take(log[:created])
    log = log[created:]
    sessions: dict[str, dict[str, object]] = {}
    occurrences: dict[str, tuple[str, int, int]] = {}
    while log or trace:
        count = data.draw(st.sampled_from((1, 5, 30, 200)))
        if log and (not trace or data.draw(st.booleans())):
            spans += mapping.take(log[:count]) + mapping.place_dap()
            log = log[count:]
        else:
            for session_id, message in trace[:count]:
                spans += mapping.take_dap(session_id, [message])
            trace = trace[count:]
        if data.draw(st.integers(0, 9)) == 0:
            changes = take_changes(mapping)
            sessions.update({key: value for key, value in changes.sessions.items() if value is not None})
            occurrences.update({row[0]: row for row in changes.occurrences})
            mapping = restore(MappingOptions(), json.loads(json.dumps(changes.log)), sessions, occurrences.values())
    spans += mapping.end(LONG_AFTER_MS)
    spans += mapping.close_dap(list(mapping.dap))

    assert {(span.trace_id, span.span_id): span for span in spans} == expected


def test_a_trace_is_saved_with_its_session_when_it_changed() -> None:
    """However many sessions have traces: only those with news are written, and a closed one is written as such."""
    session_id = "806a0589-7b86-490d-9928-679ab71012c1"
    mapping = LogMapping(MappingOptions())
    mapping.dap_calls_kept = 1_000
    mapping.take(ITEMS["happy"])
    take_changes(mapping)
    asked = message(7_000, "out", type="request", seq=1, command="next")
    saved = []
    mapping.take_dap(session_id, [asked])
    saved.append(take_changes(mapping))
    saved.append(take_changes(mapping))
    mapping.close_dap([session_id])
    saved.append(take_changes(mapping))

    assert ["dap" in (one.sessions.get(session_id) or {}) for one in saved] == [True, False, False]
    assert [list(one.sessions) for one in saved] == [[session_id], [], [session_id]]
