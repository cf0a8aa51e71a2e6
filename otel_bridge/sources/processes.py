"""Which processes write to which files, as Linux tells it in `/proc`; elsewhere that is unknown."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.sources.files import FileKey

PROC = "/proc"
_WRITES = os.O_WRONLY | os.O_RDWR
_SHARE = 0.004
"""How much of the time asking may take: with very many open files it is asked less often."""
_START_FIELD = 21  # `starttime` of proc_pid_stat(5), counted from 0


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a process. A process id alone is used again; with the boot and the start time it is not.

    `start_ticks` counts the system's clock ticks from boot, `boot` is the id of that boot.
    """

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Process:
        """The process of saved plain values (`dataclasses.asdict`). Raises ValueError when they are none."""
        pid, start_ticks, boot = values.get("pid"), values.get("start_ticks"), values.get("boot")
        if not isinstance(pid, int) or not isinstance(start_ticks, int) or not isinstance(boot, str):
            raise ValueError("not a saved process")
        return cls(pid, start_ticks, boot)


def _boot(proc: str) -> str:
    try:
        return Path(f"{proc}/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def running(pid: int, proc: str = PROC) -> Process | None:
    """The process that has this id now; None when there is none, when it has ended and only waits to be reaped, or
    when the system does not tell."""
    try:
        # The command name in the second field may hold spaces and brackets; what follows its last bracket may not.
        fields = Path(f"{proc}/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return None
        return Process(pid, int(fields[_START_FIELD - 2]), _boot(proc))
    except (OSError, ValueError, IndexError):
        return None


def has_ended(process: Process, proc: str = PROC) -> bool:
    """Whether a process that was seen alive has ended since; False where the system does not tell."""
    return Path(f"{proc}/self/stat").exists() and running(process.pid, proc) != process


@dataclass(frozen=True, slots=True)
class _Writer:
    """A process that has a file open for writing, and the file's path as the system names it."""

    pid: int
    path: str


def _writers(proc: str) -> Iterator[tuple[FileKey, _Writer]]:
    """Every regular file that a process of this user, other than this one, has open for writing."""
    user, this = os.getuid(), os.getpid()
    with os.scandir(proc) as processes:
        pids = [entry for entry in processes if entry.name.isdigit() and int(entry.name) != this]
    for process in pids:
        try:
            if process.stat().st_uid != user:
                continue
            with os.scandir(f"{process.path}/fd") as descriptors:
                for descriptor in descriptors:
                    found = _written(process.path, descriptor)
                    if found is not None:
                        yield found, _Writer(int(process.name), str(Path(descriptor.path).readlink()))
        except OSError:
            continue  # it has ended, or is not for us to see


def _written(process: str, descriptor: os.DirEntry[str]) -> FileKey | None:
    try:
        found = descriptor.stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        for line in Path(f"{process}/fdinfo/{descriptor.name}").read_text("ascii", "replace").splitlines():
            if line.startswith("flags:"):
                return FileKey(found.st_dev, found.st_ino) if int(line.split()[1], 8) & _WRITES else None
    except (OSError, ValueError, IndexError):
        pass  # closed meanwhile
    return None


class Holders:
    """Who writes to which file, asked of the system at most every `refresh_s` seconds and 0.4 % of the time.

    Of this user's processes only: of others' open files the system says nothing. Readers do not count.
    """

    def __init__(
        self, refresh_s: float = 5.0, monotonic_s: Callable[[], float] = time.monotonic, proc: str = PROC
    ) -> None:
        self._refresh_s = refresh_s
        self._monotonic_s = monotonic_s
        self._proc = proc
        self._lock = threading.Lock()
        self._next_s = float("-inf")
        self._known: Mapping[FileKey, Sequence[_Writer]] | None = None

    def _ask(self) -> Mapping[FileKey, Sequence[_Writer]] | None:
        with self._lock:
            began_s = self._monotonic_s()
            if began_s >= self._next_s:
                found: dict[FileKey, list[_Writer]] = {}
                try:
                    for key, writer in _writers(self._proc):
                        found.setdefault(key, []).append(writer)
                    self._known = found
                except OSError:
                    self._known = None
                ended_s = self._monotonic_s()
                self._next_s = ended_s + max(self._refresh_s, (ended_s - began_s) / _SHARE)
            return self._known

    def holders(self, key: FileKey) -> frozenset[Process] | None:
        """The processes that have the file open for writing; None where that is unknown."""
        known = self._ask()
        if known is None:
            return None
        found = (running(writer.pid, self._proc) for writer in known.get(key, ()))
        return frozenset(process for process in found if process is not None)

    def in_use(self, key: FileKey) -> bool | None:
        """Whether any process writes to the file; None where that is unknown."""
        known = self._ask()
        return None if known is None else any(running(writer.pid, self._proc) for writer in known.get(key, ()))

    def written_paths(self, command: bytes) -> tuple[str, ...]:
        """The paths of the files that processes write to whose command line contains `command`."""
        known = self._ask() or {}
        wanted: dict[int, bool] = {}
        paths = []
        for writer in (writer for writers in known.values() for writer in writers):
            if writer.pid not in wanted:
                wanted[writer.pid] = command in self._command_line(writer.pid)
            if wanted[writer.pid]:
                paths.append(writer.path)
        return tuple(paths)

    def _command_line(self, pid: int) -> bytes:
        try:
            return Path(f"{self._proc}/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
