"""How far a bridge has come, seen from outside: its files and what is behind in each, and what was refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from otel_bridge.errors import StateError
from otel_bridge.sources.identity import Checkpoint


@dataclass(frozen=True, slots=True)
class FollowedFile:
    """A file that the state knows: everything before `offset_bytes` is delivered.

    `path` is where it is now, or where it was last; `is_gone` says that it is under no name there any more, then
    `size_bytes` is the largest size that was seen. `last_entry_ms` is the log time of the last delivered entry.
    """

    path: str
    chain: str
    offset_bytes: int
    size_bytes: int
    last_entry_ms: int | None
    is_gone: bool

    @property
    def lag_bytes(self) -> int:
        """Bytes that are there and not delivered. A file that became shorter was written anew: all of it."""
        return self.size_bytes - self.offset_bytes if self.size_bytes >= self.offset_bytes else self.size_bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """Dead letters that wait to be sent again, and lines beside them of which no span can be read."""

    letters: int = 0
    spans: int = 0
    broken_lines: int = 0

    @property
    def is_there(self) -> bool:
        """Whether there is anything to tell of."""
        return self.letters > 0 or self.broken_lines > 0


def followed_files(checkpoints: Iterable[Mapping[str, object]], path: Path) -> list[FollowedFile]:
    """The files of these checkpoints as they are on disk now; those that are read to their end for good are left out.

    `path` is the database, for the message of the StateError that is raised for a checkpoint which is none.
    """
    try:
        points = [Checkpoint.from_json(values) for values in checkpoints]
    except ValueError as error:
        raise StateError(f"{path} is damaged ({error})", "move it away to begin anew") from error
    # What was in a file before it was truncated is no more there: its size says nothing of that.
    newest: dict[tuple[str, int, int], int] = {}
    for point in points:
        of_file = (point.chain, point.device, point.inode)
        newest[of_file] = max(newest.get(of_file, 0), point.order)
    files = []
    for point in points:
        is_newest = point.order >= newest[point.chain, point.device, point.inode]
        file = _as_on_disk(point) if is_newest else _gone(point)
        if not point.ended or (file.size_bytes > file.offset_bytes and not file.is_gone):
            files.append(file)
    return files


def _gone(point: Checkpoint) -> FollowedFile:
    return FollowedFile(
        point.path, point.chain, point.offset_bytes, point.size_bytes, point.last_entry_ms, is_gone=True
    )


def _as_on_disk(point: Checkpoint) -> FollowedFile:
    path = Path(point.path)
    places = (place for place in (path, *_named(path.parent, point.inode)) if _size_of(place, point) is not None)
    place = next(places, None)
    size_bytes = _size_of(place, point) if place else None
    if size_bytes is None:
        return _gone(point)
    return FollowedFile(str(place), point.chain, point.offset_bytes, size_bytes, point.last_entry_ms, is_gone=False)


def _size_of(path: Path, point: Checkpoint) -> int | None:
    """The size of the point's file, if it is the one under this name."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    is_it = (found.st_dev, found.st_ino) == (point.device, point.inode) and stat.S_ISREG(found.st_mode)
    return found.st_size if is_it else None


def _named(folder: Path, inode: int) -> Iterator[Path]:
    """The names of an inode in a folder: a log that rotated since its place was written down has another name there."""
    try:
        with os.scandir(folder) as entries:
            yield from [Path(entry.path) for entry in entries if entry.inode() == inode]
    except OSError:
        return


def kept_dead_letters(path: Path) -> Kept:
    """How many dead letters lie in the file, and how many refused spans that is. Only counted: no span is decoded.

    Raises StateError when the file cannot be read.
    """
    letters = spans = broken_lines = 0
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise StateError(f"{path} is no regular file", "move it away")
        with path.open("rb") as file:
            for line in file:
                try:
                    spans += int(orjson.loads(line)["refused"]["count"])
                except (ValueError, KeyError, TypeError):
                    broken_lines += line != b"\n"  # torn by a kill, or foreign
                else:
                    letters += 1
    except (FileNotFoundError, NotADirectoryError):
        return Kept()
    except OSError as error:
        raise StateError(f"cannot read {path}: {(error.strerror or '').lower()}", "check its owner and mode") from error
    return Kept(letters, spans, broken_lines)
