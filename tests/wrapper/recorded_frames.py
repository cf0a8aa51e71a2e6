"""Frames as they passed when a recorded log was written: made of the client's own record of its calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.sessions.frame_call import FrameCall
from otel_bridge.sessions.frame_mapping import FrameMapping
from otel_bridge.sessions.span import Span
from tests.calls import Call, Outcome

RUN_ID = bytes(range(16))
GAVE_UP_AFTER_MS = 20
"""The record does not say when a call was given up."""
Item = Entry | StateChange


def request_of(call: Call) -> object:
    """The `params` that the client sent."""
    raw = call.arguments.get("name") == call.tool
    return dict(call.arguments) if raw else {"name": call.tool, "arguments": dict(call.arguments)}


def frames_of(calls: Iterable[Call]) -> list[Frame]:
    """Requests, cancellations and answers of these calls in the order of their times; `seq` is the JSON-RPC id."""
    sent: list[tuple[float, Direction, object]] = []
    for call in calls:
        request = {"method": "tools/call", "params": request_of(call), "jsonrpc": "2.0", "id": call.seq}
        sent.append((call.start_ms, Direction.TO_SERVER, request))
        if call.outcome is Outcome.CLIENT_TIMEOUT:
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": call.seq}, "jsonrpc": "2.0"}
            sent.append((call.start_ms + GAVE_UP_AFTER_MS, Direction.TO_SERVER, cancelled))
        elif call.end_ms is not None:
            sent.append((call.end_ms, Direction.TO_CLIENT, {**_answer(call), "jsonrpc": "2.0", "id": call.seq}))
    numbers = dict.fromkeys(Direction, 0)
    frames = []
    for time_ms, direction, message in sorted(sent, key=lambda one: one[0]):
        data = json.dumps(message).encode()
        frames.append(Frame(direction, numbers[direction], round(time_ms * 1e6), len(data), data))
        numbers[direction] += 1
    return frames


def _answer(call: Call) -> dict[str, object]:
    if call.outcome is Outcome.RPC_ERROR:
        return {"error": {"code": -32602, "message": call.error}}
    payload = call.payload
    if call.success is not None and not call.fields:
        payload = json.dumps({"success": call.success})  # the recording cut it
    return {"result": {"content": [{"type": "text", "text": payload}]}}


def interleaved(frames: Sequence[Frame], items: Sequence[Item], log_delay_ms: float) -> Iterator[Frame | Item]:
    """Frames and entries as a worker gets them: entries in the order of the log, each so long after it was written."""
    rest = list(items)
    latest_ms = 0.0
    for frame in frames:
        while rest and max(latest_ms, rest[0].time_ms) + log_delay_ms <= frame.time_ns / 1e6:
            latest_ms = max(latest_ms, rest[0].time_ms)
            yield rest.pop(0)
        yield frame
    yield from rest


class ReadsFrames(Protocol):
    """A `FrameReader`, or what stands around one."""

    def read(self, frame: Frame) -> list[FrameCall]:
        """The calls that a frame tells of."""


def mapped(mapping: FrameMapping, reader: ReadsFrames, stream: Iterable[Frame | Item]) -> list[Span]:
    """The spans of a stream; the clock that decides how long the log is waited for is that of the stream."""
    spans: list[Span] = []
    now_s = 0.0
    for one in stream:
        if isinstance(one, Frame):
            now_s = max(now_s, one.time_ns / 1e9)
            spans += mapping.hear(reader.read(one), now_s)
        else:
            now_s = max(now_s, one.time_ms / 1e3)
            spans += mapping.take((one,))
        spans += mapping.settle(now_s)
    return spans
