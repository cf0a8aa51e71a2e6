"""What the pump tells the worker over their pipe: a row of records, each with its length in front.

The first is the configuration (it may hold headers, so it is in no command line), the last says how the server ended.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from otel_bridge.entries.frame import Direction, Frame, Gap

_LENGTH = struct.Struct("<I")
_FRAME = struct.Struct("<cBQQQ")  # kind, direction, number, time_ns, size_bytes; what follows is the frame, or its ends
_GAP = struct.Struct("<cBQQQQ")  # kind, direction, first_ns, last_ns, frames, size_bytes
_WHOLE, _LONG, _GONE, _CONFIGURATION, _END = b"f", b"l", b"g", b"c", b"e"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the worker is to do, as JSON values."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServerEnd:
    """The server has ended; `exit_code` is negative for a signal. No record follows."""

    exit_code: int
    time_ns: int


Record = Configuration | Frame | Gap | ServerEnd


def packed(record: Record) -> bytes:
    """The record as bytes."""
    match record:
        case Frame(data=bytes(data)):
            body = _frame_header(_WHOLE, record) + data
        case Frame():
            ends = _LENGTH.pack(len(record.head)) + record.head + record.tail
            body = _frame_header(_LONG, record) + ends
        case Gap():
            body = _GAP.pack(_GONE, record.direction, record.first_ns, record.last_ns, record.frames, record.size_bytes)
        case Configuration():
            body = _CONFIGURATION + json.dumps(record.values).encode()
        case ServerEnd():
            body = _END + json.dumps([record.exit_code, record.time_ns]).encode()
    return _LENGTH.pack(len(body)) + body


def _frame_header(kind: bytes, frame: Frame) -> bytes:
    return _FRAME.pack(kind, frame.direction, frame.number, frame.time_ns, frame.size_bytes)


class RecordReader:
    """The inverse of `packed`, for bytes in whatever pieces they come."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[Record]:
        """Take the next bytes; give the records that end in them. Raises ValueError for bytes that are no records."""
        self._kept += data
        return list(self._records())

    def _records(self) -> Iterator[Record]:
        start = 0
        with memoryview(self._kept) as kept:
            while start + _LENGTH.size <= len(kept):
                (length,) = _LENGTH.unpack_from(kept, start)
                end = start + _LENGTH.size + length
                if end > len(kept):
                    break
                yield _record(bytes(kept[start + _LENGTH.size : end]))
                start = end
        del self._kept[:start]


def _record(body: bytes) -> Record:
    kind = body[:1]
    try:
        if kind in (_WHOLE, _LONG):
            _, direction, number, time_ns, size_bytes = _FRAME.unpack_from(body)
            rest = body[_FRAME.size :]
            if kind == _WHOLE:
                return Frame(Direction(direction), number, time_ns, size_bytes, rest)
            (head_bytes,) = _LENGTH.unpack_from(rest)
            ends = rest[_LENGTH.size :]
            return Frame(Direction(direction), number, time_ns, size_bytes, None, ends[:head_bytes], ends[head_bytes:])
        if kind == _GONE:
            _, direction, first_ns, last_ns, frames, size_bytes = _GAP.unpack(body)
            return Gap(Direction(direction), first_ns, last_ns, frames, size_bytes)
        if kind == _CONFIGURATION:
            return Configuration(json.loads(body[1:]))
        if kind == _END:
            return ServerEnd(*json.loads(body[1:]))
    except struct.error as error:
        raise ValueError(f"a record is too short: {error}") from error
    raise ValueError(f"no record is of the kind {kind!r}")
