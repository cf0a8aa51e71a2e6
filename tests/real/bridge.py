"""The bridge itself as a process, as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from otel_bridge.cli.status_report import Status
from otel_bridge.state.reading import read_state
from tests.real.program import Program

COMMAND = (sys.executable, "-m", "otel_bridge")


class TailProcess(Program):
    """`otel-bridge tail` with a state folder of its own in `folder`, below `wrapped` (a command that runs another)."""

    def __init__(
        self,
        folder: Path,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        wrapped: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.state_dir = folder / "state"
        words = ["tail", *map(str, arguments), "--state-dir", str(self.state_dir)]
        super().__init__([*wrapped, *COMMAND, *words], folder / "bridge.log", env)

    @property
    def status(self) -> Status:
        """What `otel-bridge status` shows now."""
        return Status.of(self.state_dir, read_state(self.state_dir), int(time.time() * 1000))


def run(
    *arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None, wrapped: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs a command of the bridge to its end."""
    return subprocess.run(
        [*wrapped, *COMMAND, *map(str, arguments)],
        input=stdin.decode(),
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | dict(env or {}),
        check=False,
    )
