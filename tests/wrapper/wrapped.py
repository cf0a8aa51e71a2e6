"""`otel-bridge run` as a client starts it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

from tests.waiting import wait_until

COMMAND = (sys.executable, "-P", "-m", "otel_bridge", "run")
"""As the installed command does it: without the current folder among the places of modules."""

NOWHERE = "http://127.0.0.1:9"
"""An endpoint where nobody listens."""


def hear_signals() -> None:
    """What starts the tests may ignore signals (nohup, a shell's `&`), and what is ignored is inherited."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def in_foreground_of(terminal: int) -> None:
    """Makes a terminal that process's own, whose keys it gets."""
    hear_signals()
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


class Wrapped:
    """A wrapped server with its pipes. What is left of it, and its worker, is killed at the end."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str | Path],
        *options: str,
        endpoint: str = NOWHERE,
        env: Mapping[str, str] | None = None,
        stderr: int | None = None,
        terminal: int | None = None,
        program: Sequence[str] = COMMAND,
        has_state_dir: bool = True,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.state = folder / "state"
        self.errors = folder / "stderr"
        self._mark = f"OTEL_BRIDGE_TEST_RUN={folder}"
        state_dir = ["--state-dir", str(self.state)] if has_state_dir else []
        words = [*program, "--endpoint", endpoint, *state_dir, *options, "--", *map(str, command)]
        name, _, value = self._mark.partition("=")
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors if stderr is None else stderr,
                env={**os.environ, **(env or {}), name: value},
                cwd=folder,
                bufsize=0,
                preexec_fn=hear_signals if terminal is None else partial(in_foreground_of, terminal),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def stdin(self) -> IO[bytes]:
        """The client's end of the server's input."""
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The client's end of the server's output."""
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def said(self) -> str:
        """What came on stderr so far, from us and from the server."""
        return self.errors.read_text(errors="replace")

    def pids(self) -> list[int]:
        """Everything that runs because of it, the wrapper itself first."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue
        return sorted(found)

    def worker(self) -> int:
        """The worker's pid, as soon as it runs."""

        def found() -> int | None:
            for pid in self.pids():
                try:
                    if b"otel_bridge.wrapper.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        return pid
                except OSError:
                    continue
            return None

        return wait_until(found, "the worker runs")

    def send(self, message: Mapping[str, object]) -> None:
        """Sends a JSON-RPC message."""
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        while data:
            data = data[self.stdin.write(data) :]

    def line(self) -> bytes:
        """The next line that the server sent."""
        found = b""
        while not found.endswith(b"\n"):
            more = self.stdout.read(1)
            if not more:
                break
            found += more
        return found

    def call(self, request_id: object, method: str, **params: object) -> Any:
        """Sends a request and returns the next message."""
        self.send({"id": request_id, "method": method, "params": params})
        return json.loads(self.line())

    def close(self) -> int:
        """Closes the server's input, reads its output to the end, and returns the exit code."""
        self.stdin.close()
        self.stdout.read()
        return self.process.wait()
