"""The bridge itself as a process, as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.real.program import Program

COMMAND = (sys.executable, "-m", "otel_bridge")


class TailProcess(Program):
    """`otel-bridge tail` with a state folder of its own in `folder`."""

    def __init__(self, folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.state_dir = folder / "state"
        words = ["tail", *map(str, arguments), "--state-dir", str(self.state_dir)]
        super().__init__([*COMMAND, *words], folder / "bridge.log", env)


def run(*arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of the bridge to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin.decode(),
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | dict(env or {}),
        check=False,
    )
