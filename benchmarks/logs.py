"""Logs of any size from the recorded ones: every round is a run of the server, with ids and times of its own."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from otel_bridge.entries.kinds import STRUCTURED_LINE
from tests.recordings import recording

WHOLE = ("happy", "level_debug", "mock", "output", "kill9", "noclose", "noclose_inflight", "sigterm")
"""Recordings of which no unstructured line was trimmed: together they are the real log's mix."""

_PLACES = re.compile(
    rb"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})"
    rb'|(?<="timestamp":)(?P<ms>1[7-9]\d{11})(?=[,}])'
    rb'|(?<="timestamp":")(?P<iso>20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?=")'
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BETWEEN_ROUNDS_MS = 1_000

Place = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Content:
    """What stands in a log: `structured` counts the entries, state lines are not among them."""

    path: Path
    size_bytes: int
    lines: int
    structured: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class _Template:
    """A recorded log, cut where its ids and times stand; `first_ms` is its earliest time, `long_ms` how far it goes."""

    pieces: tuple[bytes | Place, ...]
    first_ms: int
    long_ms: int
    lines: int
    structured: int

    def render(self, start_ms: int, new_id: Callable[[], bytes]) -> bytes:
        ids: dict[bytes, bytes] = {}
        shift_ms = start_ms - self.first_ms
        parts: list[bytes] = []
        for piece in self.pieces:
            if isinstance(piece, bytes):
                parts.append(piece)
            elif piece[0] == "id":
                fresh = ids.get(piece[1])
                if fresh is None:
                    fresh = ids[piece[1]] = new_id()
                parts.append(fresh)
            else:
                time_ms = _time_ms(*piece) + shift_ms
                parts.append(b"%d" % time_ms if piece[0] == "ms" else _iso(time_ms))
        return b"".join(parts)


def write_mix(path: Path, size_bytes: int) -> Content:
    """The real log's mix: about one line in nine is an entry."""
    return _write(path, size_bytes, [_template(recording(name).lines) for name in WHOLE])


def write_structured(path: Path, size_bytes: int) -> Content:
    """The entries of the same recordings, and nothing else."""
    return _write(path, size_bytes, [_template(list(filter(is_entry, recording(name).lines))) for name in WHOLE])


def is_entry(line: bytes) -> bool:
    """Whether the line is a structured entry."""
    return STRUCTURED_LINE.search(line) is not None and b"[SM _updateSessionState " not in line


def _write(path: Path, size_bytes: int, templates: Sequence[_Template]) -> Content:
    """Rounds of the templates in turn, up to about `size_bytes`; the same bytes every time."""
    numbers = random.Random(path.name)

    def new_id() -> bytes:
        return str(uuid.UUID(int=numbers.getrandbits(128), version=4)).encode()

    start_ms = templates[0].first_ms
    written = lines = structured = 0
    with path.open("wb") as file:
        for template in _in_turn(templates):
            written += file.write(template.render(start_ms, new_id))
            lines += template.lines
            structured += template.structured
            start_ms += template.long_ms + _BETWEEN_ROUNDS_MS
            if written >= size_bytes:
                break
    return Content(path, written, lines, structured, start_ms)


def _in_turn(templates: Sequence[_Template]) -> Iterator[_Template]:
    while True:
        yield from templates


def _template(lines: Sequence[bytes]) -> _Template:
    data = b"".join(lines)
    pieces: list[bytes | Place] = []
    times: list[int] = []
    position = 0
    for found in _PLACES.finditer(data):
        kind = str(found.lastgroup)
        pieces += (data[position : found.start()], (kind, found[0]))
        position = found.end()
        if kind != "id":
            times.append(_time_ms(kind, found[0]))
    pieces.append(data[position:])
    structured = sum(map(is_entry, lines))
    return _Template(tuple(pieces), min(times), max(times) - min(times), len(lines), structured)


def _time_ms(kind: str, text: bytes) -> int:
    if kind == "ms":
        return int(text)
    return (datetime.fromisoformat(text.decode()) - _EPOCH) // timedelta(milliseconds=1)


def _iso(time_ms: int) -> bytes:
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}Z".encode()
