"""What was ever written to a log that is rotated, kept by somebody who looks often enough and never waits."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from otel_bridge.sources.succession import times_ms

LOOK_EVERY_S = 0.002
CLEAR_EVERY_S = 0.5
QUIET_S = 2.0


@dataclass(slots=True)
class _Kept:
    """A file that appeared: its descriptor, or, once it was unlinked and has long been quiet, its bytes."""

    descriptor: int
    size_bytes: int = 0
    grown_s: float = 0.0
    data: bytes | None = None

    def read(self) -> bytes:
        """All its bytes."""
        return os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0) if self.data is None else self.data

    def close_if_over(self, now_s: float) -> bool:
        """Lets the file go when it has no name and does not grow any more; whether it did."""
        found = os.fstat(self.descriptor)
        if found.st_size != self.size_bytes or found.st_nlink:
            self.size_bytes, self.grown_s = found.st_size, now_s
        if now_s - self.grown_s < QUIET_S:
            return False
        self.data = self.read()
        os.close(self.descriptor)
        return True


class Witness:
    """Keeps the bytes of every file that ever lies in a folder, in the order in which the files were begun.

    It takes part in nothing: it neither writes nor gives a file another name. A file that appears and goes between two
    of its looks is missed, so the log must be slower than that.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[_Kept] = []
        self._open: dict[tuple[int, int], _Kept] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        while self._open:
            os.close(self._open.popitem()[1].descriptor)

    @property
    def files(self) -> int:
        """How many files there were so far."""
        return len(self._files)

    def write_whole(self, path: Path) -> Path:
        """Stops, and writes the bytes of all files, the first one first, to `path`; returns that."""
        self._stop()
        self._look()
        # Of two files that appeared between two looks the entries say which is older.
        files = sorted((kept.read() for kept in self._files), key=lambda data: min(times_ms(data[:10_000]), default=0))
        with path.open("wb") as whole:
            whole.writelines(files)
        return path

    def _stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        cleared_s = 0.0
        while not self._over.wait(LOOK_EVERY_S):
            self._look()
            now_s = time.monotonic()
            if now_s - cleared_s >= CLEAR_EVERY_S:
                cleared_s = now_s
                self._open = {key: kept for key, kept in self._open.items() if not kept.close_if_over(now_s)}

    def _look(self) -> None:
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # it was renamed or deleted meanwhile
                    if (entry.stat().st_dev, entry.inode()) not in self._open:
                        self._keep(os.open(entry.path, os.O_RDONLY))

    def _keep(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        kept = _Kept(descriptor)
        if self._open.setdefault((found.st_dev, found.st_ino), kept) is not kept:
            os.close(descriptor)
        else:
            self._files.append(kept)
