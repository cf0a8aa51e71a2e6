"""Which processes hold a log open, and whether they still live: from /proc, so on Linux only; elsewhere nothing is known."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from otel_bridge.sources.files import FileKey

PROC = Path("/proc")


class Process(NamedTuple):
    """A process, told from a later one with the same pid by its start time (clock ticks after boot)."""

    pid: int
    start_time: int


def holders(keys: Collection[FileKey], proc: Path = PROC) -> dict[FileKey, frozenset[Process]]:
    """The other processes of this user that hold each of these files open for writing; empty where /proc is not.

    What may not be looked at (other users' processes) is left out.
    """
    wanted = set(keys)
    found: dict[FileKey, set[Process]] = {key: set() for key in keys}
    for entry in _processes(proc):
        try:
            descriptors = list(os.scandir(entry / "fd"))
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                status = os.stat(descriptor.path)
                key = FileKey(status.st_dev, status.st_ino)
                if key in wanted and _writes(entry, descriptor.name) and (process := _process(entry)):
                    found[key].add(process)
            except OSError:
                continue
    return {key: frozenset(processes) for key, processes in found.items()}


def is_alive(process: Process, proc: Path = PROC) -> bool:
    """Whether this very process is there: another with its pid is not it, and neither is a zombie."""
    return _process(proc / str(process.pid)) == process


def _processes(proc: Path) -> list[Path]:
    own = os.getpid()
    try:
        names = [entry.name for entry in os.scandir(proc) if entry.name.isdecimal()]
    except OSError:
        return []
    return [proc / name for name in names if int(name) != own]


def _writes(entry: Path, descriptor: str) -> bool:
    for line in (entry / "fdinfo" / descriptor).read_text().splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _process(entry: Path) -> Process | None:
    try:
        # the name, in parentheses, may hold spaces and parentheses itself
        after_name = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if after_name[0] in ("Z", "X"):
        return None
    return Process(int(entry.name), int(after_name[19]))
