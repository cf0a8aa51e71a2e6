"""A run that is killed at any moment: what it gave out and what the next run makes of the log are one span a call."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.frame import Frame
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.frame_call import FrameCall
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.frame_saved import call_from_json, frames_to_json, heard_to_json, restore_frames
from otel_bridge.sessions.ids import canonical_json
from otel_bridge.sessions.redaction import redact, redact_entry
from otel_bridge.sessions.saved import restore_into, take_changes
from otel_bridge.sessions.span import Span
from tests.calls import Call
from tests.recordings import recording
from tests.sessions.reading import items_of
from tests.wrapper.recorded_frames import RUN_ID, Item, frames_of, interleaved, mapped, request_of

OPTIONS = MappingOptions(max_value_bytes=1 << 20, max_events=1 << 20)
NAMES = ("happy", "concurrent", "errors", "kill9")


@cache
def stream_of(name: str, log_delay_ms: float) -> tuple[Frame | Item, ...]:
    """Frames and entries of a recording as its run gets them."""
    source = recording(name)
    return tuple(interleaved(frames_of(source.calls), items_of(source.log), log_delay_ms))


def saved_and_restored(mapping: FrameMapping) -> FrameMapping:
    """The mapping as a later run has it: through JSON, and without frames."""
    changes = take_changes(mapping)
    log, sessions, frames = json.loads(json.dumps([changes.log, changes.sessions, frames_to_json(mapping)]))
    later = FrameMapping(OPTIONS, FrameOptions(is_live=False))
    restore_into(later, log, {name: value for name, value in sessions.items() if value}, changes.occurrences)
    restore_frames(later, frames)
    return later


def shown(tool: object, arguments: object) -> tuple[object, str]:
    """What tells calls apart; the server logs arguments that were left out as an empty object."""
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if name != "executablePath"}
    return tool, canonical_json(arguments or {}).decode()


def calls_in(spans: Iterable[Span]) -> Counter[tuple[object, str]]:
    """The calls among spans."""
    return Counter(
        shown(
            span.attributes["gen_ai.tool.name"],
            json.loads(str(span.attributes.get("gen_ai.tool.call.arguments", "null"))),
        )
        for span in spans
        if span.name.startswith("tools/call ")
    )


def of_client(call: Call) -> tuple[object, str]:
    """A call of the client's record as its span shows it."""
    request = request_of(call)
    assert isinstance(request, dict)
    return shown(request.get("name"), redact(request.get("arguments")))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_call_is_one_span_wherever_the_run_is_killed(name: str, data: st.DataObject) -> None:
    """No call of the client is missing that its log tells of, and none is there twice."""
    stream = stream_of(name, data.draw(st.sampled_from([1.0, 40.0, 3_000.0])))
    cut = data.draw(st.integers(0, len(stream)))
    mapping = FrameMapping(OPTIONS, FrameOptions())
    given_out = mapped(mapping, FrameReader(RUN_ID, OPTIONS, is_debugger=True), stream[:cut])
    rest = [one for one in stream[cut:] if not isinstance(one, Frame)]

    later = saved_and_restored(mapping)
    spans = [*given_out, *later.take(rest), *later.over()]

    found = calls_in(spans)
    sent = Counter(map(of_client, recording(name).calls))
    logged = Counter(
        shown(entry.fields.get("tool"), entry.fields.get("request"))
        for entry in (redact_entry(one) for one in stream if isinstance(one, Entry))
        if entry.kind == "tool:call"
    )
    assert not found - sent
    assert not logged - found
    assert len({(span.trace_id, span.span_id) for span in spans}) == len(spans)


class Heard:
    """A reader that writes down, as JSON, what it hears of each call."""

    def __init__(self) -> None:
        self._reader = FrameReader(RUN_ID, OPTIONS, is_debugger=True)
        self.journal: dict[bytes, str] = {}

    def read(self, frame: Frame) -> list[FrameCall]:
        """As any reader."""
        calls = self._reader.read(frame)
        self.journal |= {call.opener: json.dumps(heard_to_json(call)) for call in calls}
        return calls


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_was_sent_and_not_committed_is_sent_again_as_it_was(name: str, data: st.DataObject) -> None:
    """The state is that of an earlier moment; what was delivered since then comes again under the same ids."""
    stream = stream_of(name, 1.0)
    committed = data.draw(st.integers(0, len(stream)))
    killed = data.draw(st.integers(committed, len(stream)))
    mapping, reader = FrameMapping(OPTIONS, FrameOptions()), Heard()
    given_out = mapped(mapping, reader, stream[:committed])
    later = saved_and_restored(mapping)
    given_out += mapped(mapping, reader, stream[committed:killed])

    later.recall(call_from_json(json.loads(call)) for call in reader.journal.values())
    rest = [one for one in stream[committed:] if not isinstance(one, Frame)]
    spans = [*given_out, *later.take(rest), *later.over()]

    distinct = {(span.trace_id, span.span_id, repr(span)): span for span in spans}.values()
    assert len({(span.trace_id, span.span_id) for span in distinct}) == len(distinct)
    assert not calls_in(distinct) - Counter(map(of_client, recording(name).calls))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_saved_is_all_that_matters(name: str, data: st.DataObject) -> None:
    """A mapping that is put back from its saved values goes on with the same calls, known by the same ids."""
    stream = stream_of(name, 5.0)
    cut = data.draw(st.integers(0, len(stream)))
    mapping = FrameMapping(OPTIONS, FrameOptions())
    mapped(mapping, FrameReader(RUN_ID, OPTIONS, is_debugger=True), stream[:cut])

    later = saved_and_restored(mapping)

    assert [call.opener for call in later.calls.waiting] == [call.opener for call in mapping.calls.waiting]
    assert [call.answer for call in later.calls.waiting] == [call.answer for call in mapping.calls.waiting]
    assert [call.log_number for call in later.calls.waiting] == [call.log_number for call in mapping.calls.waiting]
    assert {one.call.number: one.is_given for one in later.calls.tracked} == {
        one.call.number: one.is_given for one in mapping.calls.tracked
    }
