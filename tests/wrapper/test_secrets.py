"""No planted secret of the recorded session leaves by its frames, nor lies in what a run writes down."""

from __future__ import annotations

import json
import re

import pytest

from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.frame_saved import frames_to_json, heard_to_json
from tests.recordings import recording
from tests.sessions.reading import items_of
from tests.sessions.test_secrets import NOTHING_TELLS, PLANTED
from tests.wrapper.recorded_frames import RUN_ID, frames_of, interleaved


@pytest.mark.parametrize("capture", Capture)
def test_only_what_nothing_tells_leaves(capture: Capture) -> None:
    """Not in a span, nor in the journal or the state of the run."""
    source = recording("secrets")
    options = MappingOptions(capture=capture, max_value_bytes=1 << 20)
    mapping, reader = FrameMapping(options, FrameOptions()), FrameReader(RUN_ID, options, is_debugger=True)
    told = []
    for one in interleaved(frames_of(source.calls), items_of(source.log), 5.0):
        if isinstance(one, Frame):
            calls = reader.read(one)
            told += [json.dumps(heard_to_json(call)) for call in calls]
            told.append(repr(mapping.hear(calls, one.time_ns / 1e9)))
        else:
            told.append(repr(mapping.take((one,))))
        told.append(json.dumps(frames_to_json(mapping)))
    told.append(repr(mapping.over()))
    everything = "\n".join(told)

    assert "hunter2" in json.dumps([frame.data.decode() for frame in frames_of(source.calls) if frame.data])
    leaked = {secret for secret in PLANTED if secret in everything}
    assert leaked <= NOTHING_TELLS[capture]
    assert not re.search(r"hunter2|ghp_[A-Z]", everything)


@pytest.mark.parametrize("secret", ["password=hunter2secret", "ghp_" + "a1B2" * 9])
@pytest.mark.parametrize("capture", Capture)
def test_no_field_of_a_frame_is_taken_as_it_is(capture: Capture, secret: str) -> None:
    """Whichever name, id, code or version holds a secret: it is in no span, and in nothing that is written down."""
    options = MappingOptions(capture=capture)
    mapping, reader = FrameMapping(options, FrameOptions()), FrameReader(RUN_ID, options, is_debugger=True)
    program = {"name": secret, "version": secret}
    created = json.dumps({"success": True, "sessionId": secret})
    arguments = {"sessionId": secret, "name": secret, "language": secret, "executablePath": secret}
    messages = [
        (Direction.TO_SERVER, 0, "initialize", {"protocolVersion": secret, "clientInfo": program}),
        (Direction.TO_CLIENT, 0, "result", {"protocolVersion": secret, "serverInfo": program}),
        (Direction.TO_SERVER, secret, "tools/call", {"name": secret, "arguments": arguments}),
        (Direction.TO_CLIENT, secret, "error", {"code": secret, "message": secret}),
        (Direction.TO_SERVER, 1, "tools/call", {"name": "create_debug_session", "arguments": arguments}),
        (Direction.TO_CLIENT, 1, "result", {"content": [{"type": "text", "text": created}]}),
        (Direction.TO_SERVER, 2, "tools/call", {"name": "close_debug_session", "arguments": arguments}),
    ]
    told = []
    for number, (direction, request_id, what, body) in enumerate(messages):
        fields = {what: body} if what in ("result", "error") else {"method": what, "params": body}
        data = json.dumps({"jsonrpc": "2.0", "id": request_id, **fields}).encode()
        calls = reader.read(Frame(direction, number, 10**18 + number * 10**6, len(data), data))
        told += [json.dumps(heard_to_json(call)) for call in calls]
        told += [repr(mapping.hear(calls, number)), json.dumps(frames_to_json(mapping))]
    told.append(repr(mapping.over()))
    everything = "\n".join(told)

    assert "tools/call" in everything
    assert secret.rpartition("=")[2] not in everything
