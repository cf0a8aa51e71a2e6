"""One bridge on one state folder: a lock that the system lets go of, however its holder ends."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.errors import StateError
from otel_bridge.state.place import open_own_file, reason

LOCK = "bridge.lock"


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a state folder; `pid` is None when it did not say."""

    pid: int | None

    def __str__(self) -> str:
        return f"process {self.pid}" if self.pid else "another process"


class FolderLock:
    """Held from construction to `release`. Raises StateError, which names the holder, when another process has it."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        self._descriptor = open_own_file(path)
        try:
            self._take(folder)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            self.release()
            raise StateError(
                f"cannot lock {path}: {reason(error)}",
                "make room on its disk, or give another folder with --state-dir, on a local disk",
            ) from error
        except StateError:
            self.release()
            raise

    def _take(self, folder: Path) -> None:
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                return
            # Who only asks whether a bridge runs holds a shared lock for that moment: no reason to give up.
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateError(
                    f"the state folder {folder} is in use by {_written(self._descriptor)}",
                    "stop that bridge, or give this one its own folder with --state-dir",
                ) from None
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """Let another bridge have the folder. Releasing twice is allowed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def holder_of(folder: Path) -> Holder | None:
    """Who holds the folder now; None when nobody does. Changes nothing.

    Raises OSError when the lock file is there but cannot be asked.
    """
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(descriptor)
    finally:
        os.close(descriptor)
    return None


def _written(descriptor: int) -> Holder:
    text = os.pread(descriptor, 32, 0).strip()
    return Holder(int(text) if text.isdigit() else None)
