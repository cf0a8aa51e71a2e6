"""Cuts the bytes of one direction into frames, whatever pieces they come in.

The MCP specification's stdio transport puts a newline behind every message and none into one.
"""

from __future__ import annotations

from otel_bridge.entries.frame import Direction, Frame

MAX_FRAME_BYTES = 1 << 20
"""Longer frames pass like all others, and are counted; they are not kept, so that a huge one costs no memory."""

END_BYTES = 256
"""How much of either end of a longer frame is kept: enough for the id of the call that it answers."""


class FrameCutter:
    """Takes the bytes of one direction as they come; gives the frames that end in them. Empty lines are no frames."""

    def __init__(self, direction: Direction, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._direction = direction
        self._max_frame_bytes = max_frame_bytes
        self._number = 0
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._head = self._tail = b""

    def feed(self, data: bytes, time_ns: int) -> list[Frame]:
        """Take the next bytes, read at `time_ns`; give the frames whose newline is among them."""
        frames: list[Frame] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data[start:end])
            if frame := self._finish(time_ns):
                frames.append(frame)
            start = end + 1
        if start < len(data):
            self._keep(data[start:] if start else data)
        return frames

    def _keep(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        if self._size_bytes <= self._max_frame_bytes:
            self._pieces.append(piece)
            return
        if self._pieces:
            kept = b"".join(self._pieces)
            self._pieces.clear()
            self._head, self._tail = kept[:END_BYTES], kept[-END_BYTES:]
        if len(self._head) < END_BYTES:
            self._head += piece[: END_BYTES - len(self._head)]
        self._tail = (self._tail + piece[-END_BYTES:])[-END_BYTES:]

    def _finish(self, time_ns: int) -> Frame | None:
        size_bytes, self._size_bytes = self._size_bytes, 0
        if size_bytes > self._max_frame_bytes:
            frame = Frame(self._direction, self._number, time_ns, size_bytes, None, self._head, self._tail)
            self._head = self._tail = b""
        else:
            data = b"".join(self._pieces)
            self._pieces.clear()
            if not data.strip(b" \t\r"):
                return None
            frame = Frame(self._direction, self._number, time_ns, size_bytes, data)
        self._number += 1
        return frame
