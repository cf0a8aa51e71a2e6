"""The seam to the file system: what the rest of this package may do with files, and the real implementation.

Everything that follows logs goes through `Files` and `Handle`, so that a test can stand between. Only regular files are
ever opened: a FIFO, a device or a socket in a log folder must neither block nor react.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol


class NotRegularError(OSError):
    """The path names a folder, FIFO, device or socket: nothing that is opened here."""


class FileKey(NamedTuple):
    """What the system calls one file, whatever names it has: the numbers of its device and inode."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class FileStat:
    """The part of `stat` that following a log needs. `links` 0 means that the file has no name any more.

    `changed_ns` moves when a file is written, and when it gets another name or loses one.
    """

    key: FileKey
    size_bytes: int
    modified_ns: int
    changed_ns: int
    links: int
    owner: int
    regular: bool


class Name(NamedTuple):
    """One name in a folder. `inode` is None where the name is a symbolic link, whose target must be asked for."""

    name: str
    inode: int | None


class Handle(Protocol):
    """An open file. It keeps the bytes readable whatever happens to the file's names."""

    def stat(self) -> FileStat:
        """What the file is now. Raises OSError when the system cannot say."""

    def pread(self, count_bytes: int, offset_bytes: int) -> bytes:
        """At most `count_bytes` from `offset_bytes` on; empty at the end. Raises OSError when reading fails."""

    def close(self) -> None:
        """Let the file go. Closing twice is allowed."""


class Files(Protocol):
    """The file system, as far as following logs needs it."""

    def open(self, path: str) -> Handle:
        """Open a regular file for reading. Raises NotRegularError for anything else, OSError as the system says."""

    def stat(self, path: str) -> FileStat:
        """What a path names, links followed. Raises OSError as the system says."""

    def list(self, folder: str) -> list[Name]:
        """The names in a folder, in no order, folders left out. Raises OSError as the system says."""


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(
        key=FileKey(found.st_dev, found.st_ino),
        size_bytes=found.st_size,
        modified_ns=found.st_mtime_ns,
        changed_ns=found.st_ctime_ns,
        links=found.st_nlink,
        owner=found.st_uid,
        regular=stat.S_ISREG(found.st_mode),
    )


class LocalHandle:
    """A descriptor of the operating system."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def stat(self) -> FileStat:
        return _file_stat(os.fstat(self._descriptor))

    def pread(self, count_bytes: int, offset_bytes: int) -> bytes:
        return os.pread(self._descriptor, count_bytes, offset_bytes)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LocalFiles:
    """The operating system's files."""

    def open(self, path: str) -> Handle:
        # Asked before opening, because opening a device can already do something, and after it, because the name may
        # have changed hands between; O_NONBLOCK so that a FIFO which slipped between cannot block.
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise NotRegularError(f"not a regular file: {path!r}")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotRegularError(f"not a regular file: {path!r}")
        return LocalHandle(descriptor)

    def stat(self, path: str) -> FileStat:
        return _file_stat(Path(path).stat())

    def list(self, folder: str) -> list[Name]:
        with os.scandir(folder) as entries:
            return [
                Name(entry.name, None if entry.is_symlink() else entry.inode())
                for entry in entries
                if not entry.is_dir(follow_symlinks=False)
            ]


def is_folder(path: str | Path) -> bool:
    """Whether a path names a folder; one that must not be looked at counts as none (`pathlib` alone raises then)."""
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def is_file(path: str | Path) -> bool:
    """Whether a path names a regular file; one that must not be looked at counts as none."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def reason(error: OSError) -> str:
    """An OSError in the words of the system, without the path (which the message around it already names)."""
    return (error.strerror or str(error)).lower()
