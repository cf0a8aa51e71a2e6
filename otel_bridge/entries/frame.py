"""What passes between an MCP client and its server over stdio, as plain values: one JSON-RPC message a line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Direction(IntEnum):
    """Which way a frame goes."""

    TO_SERVER = 0
    TO_CLIENT = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame, without its newline.

    `number` counts the frames of its direction from 0, `time_ns` is the Unix time at which its last byte was read. Of a
    frame over the limit only `size_bytes` and its ends are known: `data` is None, `head` and `tail` hold them.
    """

    direction: Direction
    number: int
    time_ns: int
    size_bytes: int
    data: bytes | None
    head: bytes = b""
    tail: bytes = b""


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames of one direction that passed and were not handed over, because whoever reads them could not keep up."""

    direction: Direction
    first_ns: int
    last_ns: int
    frames: int
    size_bytes: int
