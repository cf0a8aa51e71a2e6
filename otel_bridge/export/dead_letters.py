"""Refused spans, kept beside the state until somebody sends them again.

One line of the file is one OTLP/JSON request (`resourceSpans`, as a collector's file receiver reads it) with three
fields more: `refused` says when, by which code and why. Spans come in their order, so the file is a log of refusals.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from otel_bridge.errors import StateError
from otel_bridge.export.encode import EncodedSpan, RequestEncoder

DEFAULT_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Spans that a backend refused together: `refused_count` of them, all but in a partial success."""

    spans: tuple[EncodedSpan, ...]
    refused_count: int
    code: str
    reason: str
    time_unix_s: float


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A dead letter as the file has it. `body` is the whole `ExportTraceServiceRequest`, to be sent as it is."""

    key: str
    body: bytes
    span_count: int
    refused_count: int
    code: str
    reason: str
    time: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What the file holds: its letters, each once, and how many lines are none (torn by a kill, or foreign)."""

    letters: tuple[StoredLetter, ...]
    broken_lines: int


class DeadLetters:
    """The file of refused spans. Several processes may use it at once; each change is one step, also for a kill.

    It holds at most `max_bytes`; what comes after is not kept, and `add` says so. All methods raise `StateError` when
    the file cannot be read or written.
    """

    def __init__(self, path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes

    def add(self, letters: Sequence[DeadLetter], request: RequestEncoder) -> list[bool]:
        """Append the letters; when it returns they are on the disk. Says for each whether there was room for it."""
        lines = [_line(letter, request) for letter in letters]
        with self._locked(), self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            size_bytes = os.fstat(file).st_size
            room, kept, out = self.max_bytes - size_bytes, [], []
            for line in lines:
                kept.append(len(line) <= room)
                if kept[-1]:
                    out.append(line)
                    room -= len(line)
            # A kill or a full disk may have left half a line, which must not swallow the next one.
            if out and size_bytes and os.pread(file, 1, size_bytes - 1) != b"\n":
                out.insert(0, b"\n")
            _write_all(file, b"".join(out))
            os.fsync(file)
        return kept

    def read(self) -> Contents:
        """All letters, oldest first. A letter that was written twice, which a kill can cause, comes once."""
        letters: dict[str, StoredLetter] = {}
        broken = 0
        for line in self._lines():
            letter = _stored(line)
            if letter is None:
                broken += 1
            else:
                letters.setdefault(letter.key, letter)
        return Contents(tuple(letters.values()), broken)

    def remove(self, keys: Collection[str]) -> None:
        """Take the letters with these keys out, all or, after a kill, none; lines that are no letters stay."""
        with self._locked():
            rest = [line for line in self._lines() if (letter := _stored(line)) is None or letter.key not in keys]
            new = self.path.with_suffix(".new")
            with self._open(os.O_WRONLY | os.O_CREAT | os.O_TRUNC, new) as file:
                _write_all(file, b"".join(line + b"\n" for line in rest))
                os.fsync(file)
            with _as_state_error(self.path):
                new.replace(self.path)
                _sync_folder(self.path.parent)

    def _lines(self) -> list[bytes]:
        try:
            with self._open(os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as reader:
                return [line for line in reader.read().split(b"\n") if line]
        except _MissingError:
            return []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Not the file itself: `remove` puts another one in its place.
        with self._open(os.O_RDWR | os.O_CREAT, self.path.with_suffix(".lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _open(self, flags: int, path: Path | None = None) -> Iterator[int]:
        """A descriptor of a regular file with mode 0600; errors of the file become `StateError`."""
        path = path or self.path
        with _as_state_error(path):
            if flags & os.O_CREAT:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise StateError(f"{path} is not a regular file", "move it away")
                yield file
            finally:
                os.close(file)


class _MissingError(StateError):
    """There is no such file."""


@contextmanager
def _as_state_error(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise _MissingError(f"{path}: no such file", "check the state folder") from error
    except OSError as error:
        raise StateError(f"cannot use {path}: {error.strerror}", "check its permissions and free space") from error


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(letter: DeadLetter, request: RequestEncoder) -> bytes:
    from otel_bridge.export import otlp_json

    refused = {
        "time": datetime.fromtimestamp(letter.time_unix_s, UTC).isoformat(timespec="milliseconds"),
        "code": letter.code,
        "reason": letter.reason,
        "count": letter.refused_count,
    }
    return orjson.dumps({"refused": refused, **otlp_json.from_request(request.encode(letter.spans))}) + b"\n"


def _stored(line: bytes) -> StoredLetter | None:
    """The letter of a line, or None if it is none."""
    from otel_bridge.export import otlp_json

    try:
        value = orjson.loads(line)
        refused = value.pop("refused")
        key = hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
        span_count = sum(1 for _ in otlp_json.spans_of(value))
        return StoredLetter(
            key=key,
            body=otlp_json.to_request(value),
            span_count=span_count,
            refused_count=int(refused["count"]),
            code=str(refused["code"]),
            reason=str(refused["reason"]),
            time=str(refused["time"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
