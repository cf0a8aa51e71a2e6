"""A conversation over JSON-RPC, frame by frame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.span import Span

START_NS = 1_796_000_000_000_000_000
STEP_NS = 1_000_000
RUN_ID = b"0123456789abcdef"


class Conversation:
    """Frames of client and server, a millisecond apart, and the spans that they make final."""

    def __init__(
        self,
        capture: Capture = Capture.ARGUMENTS,
        *,
        is_debugger: bool = False,
        join_caller: bool = False,
        is_logged: bool = False,
    ) -> None:
        options = MappingOptions(capture)
        self.reader = FrameReader(RUN_ID, options, is_debugger=is_debugger)
        self.mapping = FrameMapping(options, FrameOptions(is_logged=is_logged, join_caller=join_caller))
        self.spans: list[Span] = []
        self.now_s = 0.0
        self._numbers = dict.fromkeys(Direction, 0)
        self._time_ns = START_NS

    def frame(self, direction: Direction, data: bytes, *, max_bytes: int = 1 << 20) -> None:
        """Passes a frame, of which only its ends are known where it is longer than the limit."""
        ends = (data[:256], data[-256:]) if len(data) > max_bytes else (b"", b"")
        whole = None if len(data) > max_bytes else data
        frame = Frame(direction, self._numbers[direction], self._time_ns, len(data), whole, *ends)
        self._numbers[direction] += 1
        self._time_ns += STEP_NS
        self.spans += self.mapping.hear(self.reader.read(frame), self.now_s)

    def client(self, message: Mapping[str, object] | Sequence[object]) -> None:
        """The client sends a message, or a batch."""
        self.frame(Direction.TO_SERVER, json.dumps(message).encode())

    def server(self, message: Mapping[str, object] | Sequence[object]) -> None:
        """The server sends a message, or a batch."""
        self.frame(Direction.TO_CLIENT, json.dumps(message).encode())

    def ask(self, request_id: object, tool: object, arguments: object = None, **more: object) -> None:
        """The client calls a tool."""
        params = {"name": tool, **({} if arguments is None else {"arguments": arguments}), **more}
        self.client({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})

    def reply(self, request_id: object, text: str = "", **result: object) -> None:
        """The server answers."""
        content = [{"type": "text", "text": text}]
        self.server({"jsonrpc": "2.0", "id": request_id, "result": {"content": content, **result}})

    def fail(self, request_id: object, code: object, message: object) -> None:
        """The server refuses."""
        self.server({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})

    def wait(self, seconds: float) -> None:
        """Time passes, and the log is read to its end."""
        self.now_s += seconds
        self.spans += self.mapping.settle(self.now_s)

    def end(self) -> list[Span]:
        """The server ends; returns all spans."""
        self.spans += self.mapping.over()
        return self.spans
