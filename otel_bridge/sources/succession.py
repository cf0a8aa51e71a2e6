"""Whether one file continues another, judged by the entries inside: names are evidence only (names.py)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from otel_bridge.sources.files import Handle

_LOOK_BYTES = 65_536
_STEP_BACK_MS = 1_000
"""Times in one log step back (by up to 112 ms in a real server's log under load), so ends may overlap by a little."""

_TIME = re.compile(
    rb'"timestamp":\s{0,4}(?:(\d{12,14})\b|"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)")'
)
_SESSION = re.compile(rb'"sessionId":\s{0,4}"([^"\\]{1,128})"')


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What the beginning and the end of a file show: the earliest time in the first 64 kB, the latest in the last 64 kB
    (Unix ms, None where there is none), the session ids in both, and when and how large the file was."""

    first_ms: int | None
    last_ms: int | None
    sessions: frozenset[bytes]
    size_bytes: int
    modified_ms: int
    content_hash: str
    """Of both ends: files of the same size with the same ends are taken for copies of one."""


def times_ms(data: bytes) -> list[int]:
    """The times of the entries in some lines, Unix ms, in the order of the bytes."""
    found = []
    for match in _TIME.finditer(data):
        if match[1] is not None:
            found.append(int(match[1]))
            continue
        try:
            moment = datetime.fromisoformat(match[2].decode("ascii"))
        except ValueError:
            continue
        found.append(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    return found


def began_ms(handle: Handle) -> int | None:
    """The earliest time in the first 64 kB of an open file, Unix ms. Raises OSError when reading fails."""
    return min(times_ms(handle.pread(_LOOK_BYTES, 0)), default=None)


def glimpse(handle: Handle) -> Glimpse:
    """Look at both ends of an open file. Raises OSError when reading fails."""
    found = handle.stat()
    head = handle.pread(_LOOK_BYTES, 0)
    tail = handle.pread(_LOOK_BYTES, max(0, found.size_bytes - _LOOK_BYTES))
    return Glimpse(
        first_ms=min(times_ms(head), default=None),
        last_ms=max(times_ms(tail), default=None),
        sessions=frozenset(_SESSION.findall(head)) | frozenset(_SESSION.findall(tail)),
        size_bytes=found.size_bytes,
        modified_ms=found.modified_ns // 1_000_000,
        content_hash=hashlib.sha256(head + tail).hexdigest(),
    )


def continues(older: Glimpse, newer: Glimpse) -> bool:
    """Whether `newer` can be where the writer of `older` went on after a rotation.

    Two logs that were written at the same time are no rotation, unless a session stands in both (a second writer keeps
    writing to the renamed file for good). Where one has no time in it, when they were last written decides.
    """
    if older.sessions & newer.sessions:
        return True
    if older.last_ms is None or newer.first_ms is None:
        return older.modified_ms <= newer.modified_ms
    return older.last_ms <= newer.first_ms + _STEP_BACK_MS
