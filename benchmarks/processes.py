"""What a process has used so far, and what it used until it ended. Linux: reads /proc."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of the wall's clock and of processors, and the most memory that was resident, in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def run_to_end(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> tuple[Used, str]:
    """Runs a command to its end; what it used, and what it printed. RuntimeError, with its words, when it fails.

    It may keep its bytecode, as an installed program does: to compile every module at each start is no one's cost.
    """
    variables = os.environ | dict(env or {})
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    started_s = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables,
        text=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started_s
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}:\n{output[-2000:]}")
    return Used(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024), output


def cpu_s(pid: int) -> float:
    """Seconds of processor time that a living process has used, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_bytes(pid: int) -> int:
    """How much of a process lies in memory now."""
    return _status_bytes(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    """The most that lay in memory so far."""
    return _status_bytes(pid, "VmHWM")


def _status_bytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise ValueError(f"the kernel does not tell the {name} of {pid}")
