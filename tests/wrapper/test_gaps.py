"""Frames that passed and were not handed over: what the log knows of their calls stands for itself."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.frame import Direction, Frame, Gap
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.redaction import redact_entry
from otel_bridge.sessions.span import Span
from tests.recordings import recording
from tests.wrapper.recorded_frames import RUN_ID, Item, mapped
from tests.wrapper.test_pickup_mapping import calls_in, of_client, shown, stream_of

OPTIONS = MappingOptions(max_value_bytes=1 << 20, max_events=1 << 20)


def without(stream: tuple[Frame | Item, ...], first: int, last: int) -> tuple[list[Frame | Item], list[Gap]]:
    """The stream without the frames of a stretch, and what is told of them instead."""
    lost = [one for one in stream[first:last] if isinstance(one, Frame)]
    gaps = []
    for direction in Direction:
        frames = [frame for frame in lost if frame.direction is direction]
        if frames:
            size_bytes = sum(frame.size_bytes for frame in frames)
            gaps.append(Gap(direction, frames[0].time_ns, frames[-1].time_ns, len(frames), size_bytes))
    return [one for one in stream if one not in lost], gaps


@pytest.mark.parametrize("name", ["happy", "concurrent", "errors"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_logged_call_is_one_span_whatever_was_dropped(name: str, data: st.DataObject) -> None:
    """From its frames where they are known, from the log where they are not."""
    stream = stream_of(name, 5.0)
    first = data.draw(st.integers(0, len(stream)))
    last = data.draw(st.integers(first, len(stream)))
    rest, gaps = without(stream, first, last)
    mapping = FrameMapping(OPTIONS, FrameOptions())
    for gap in gaps:
        mapping.calls.miss(gap)

    spans: list[Span] = mapped(mapping, FrameReader(RUN_ID, OPTIONS, is_debugger=True), rest)
    spans += mapping.over()

    found = calls_in(spans)
    logged = Counter(
        shown(entry.fields.get("tool"), entry.fields.get("request"))
        for entry in (redact_entry(one) for one in stream if isinstance(one, Entry))
        if entry.kind == "tool:call"
    )
    assert not found - Counter(map(of_client, recording(name).calls))
    assert not logged - found


def test_the_log_alone_makes_no_calls_where_nothing_was_dropped() -> None:
    """Two servers may write to one log; the calls of the other are none of this connection."""
    stream = [one for one in stream_of("happy", 5.0) if not isinstance(one, Frame)]
    mapping = FrameMapping(OPTIONS, FrameOptions())

    spans = mapped(mapping, FrameReader(RUN_ID, OPTIONS, is_debugger=True), stream) + mapping.over()

    assert not calls_in(spans)
    assert any(span.name == "debuggee paused" for span in spans)
