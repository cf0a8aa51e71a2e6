"""Runs of `otel-bridge run` whose folders are there, seen from outside: which, and what of theirs is not delivered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from otel_bridge.cli.progress import followed_files
from otel_bridge.errors import StateError
from otel_bridge.state.reading import read_state
from otel_bridge.wrapper.run_folder import RunFolder, run_folders

TAKEN_UP = "the next `otel-bridge run` with this state folder delivers it"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is not done. `started_ms` is Unix time.

    `is_running` says that it, or its server, still is there and delivers by itself; else the next run takes it up.
    `behind_bytes` of `log` are not delivered, and `open_sessions` have not ended. `problem` says why it cannot be read.
    """

    folder: str
    is_running: bool
    log: str = ""
    started_ms: int | None = None
    behind_bytes: int = 0
    open_sessions: int = 0
    problem: str = ""

    @property
    def waiting(self) -> str:
        """What waits, in words."""
        if self.problem:
            return self.problem
        if not self.behind_bytes and not self.open_sessions:
            return "at most what it noted of its last calls"
        sessions = f"{self.open_sessions} open session{'s' * (self.open_sessions != 1)}"
        return f"{self.behind_bytes:,} bytes of {self.log} and {sessions}"


def known_runs(state_folder: Path) -> tuple[Run, ...]:
    """The runs of a state folder that are not done, the oldest first. Nothing is changed."""
    runs = [_run(path, is_held) for path, is_held in run_folders(state_folder)]
    return tuple(sorted(runs, key=lambda run: (run.started_ms or 0, run.folder)))


def _run(path: Path, is_held: bool) -> Run:
    try:
        left = RunFolder(path, -1).description()
        view = read_state(path)
        files = followed_files(view.checkpoints, view.path) if view else []
    except StateError as error:
        return Run(str(path), is_held, problem=error.message)
    behind_bytes = sum(file.lag_bytes for file in files)
    if view is None or not view.checkpoints:
        behind_bytes = _size_bytes(left.log) if left.is_private else 0
    return Run(
        str(path),
        is_held or left.is_alive(),
        str(left.log),
        left.started_ms,
        behind_bytes,
        len(view.sessions) if view else 0,
    )


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
