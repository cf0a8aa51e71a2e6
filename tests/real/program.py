"""A real program under test: started, killed, started again, and gone at the end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.waiting import wait_until


def end_marked(folder: Path) -> None:
    """Kills every process that was started under `marked(folder)`, by whomever, in whatever process group."""
    ((name, value),) = marked(folder).items()
    mark = f"{name}={value}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue


def marked(folder: Path) -> dict[str, str]:
    """The variable by which `end_marked` finds a process and all that it starts."""
    return {"OTEL_BRIDGE_TEST_FOLDER": str(folder)}


class Program:
    """A process in a group of its own, with its output appended to a file.

    As a context manager it runs inside the block, and is killed with its group at the end, however that ends.
    """

    def __init__(self, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is added to this process's environment."""
        self.command = [str(word) for word in command]
        self.log = log
        self.env = dict(env or {})
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def resident_bytes(self) -> int:
        """How much memory the process itself has in RAM."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"process {self.process.pid} has no memory")

    @property
    def output(self) -> str:
        """What it has written to stdout and stderr so far, over all starts."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def start(self) -> None:
        """Starts it, again where it ran before."""
        assert not self.running, f"{self.command[0]} runs already"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.env,
                start_new_session=True,
            )

    def wait_ready(self, ready: Callable[[], bool], what: str) -> None:
        """Waits until it is ready; AssertionError shows the end of its output when it ends instead."""

        def ready_or_gone() -> bool:
            assert self.running, f"{self.command[0]} ended instead: {what}\n{self.output[-4000:]}"
            return ready()

        wait_until(ready_or_gone, what)

    def kill(self) -> None:
        """SIGKILL, at once and to its whole group; returns when it is gone."""
        self._signal(signal.SIGKILL)

    def stop(self, deadline_s: float = 20.0) -> int:
        """SIGTERM; returns the exit code (minus the signal's number where one ended it)."""
        self._signal(signal.SIGTERM, deadline_s)
        assert self.process is not None
        return self.process.wait()

    def _signal(self, number: signal.Signals, deadline_s: float = 20.0) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        os.killpg(self.process.pid, number)
        wait_until(lambda: not self.running, f"{self.command[0]} ends after {number.name}", deadline_s)
