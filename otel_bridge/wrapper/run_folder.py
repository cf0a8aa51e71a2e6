"""The folder of one run: its state, and the server's log where the run chose its place.

A run is alive as long as somebody holds its lock: the pump, or the worker that is not done yet. What is left of a dead
one is taken up by exactly one later run: by whoever gets the lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from otel_bridge.errors import StateError
from otel_bridge.sessions.capture import Capture
from otel_bridge.sources.claims import Claim, claim, claimed_paths, claims_folder
from otel_bridge.sources.processes import Process, running
from otel_bridge.state.place import open_own_file, prepare_state_folder, reason

RUNS = "runs"
LOCK = "run.lock"
DESCRIPTION = "run.json"
LOG = "server.log"
HALF_FOR_S = 3600.0
"""Making or removing a folder takes moments; what is half for so long stays so."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a later run has to know. `is_private` says that the log lies in the run's folder and belongs to it.

    `capture` is what the run's user let out, `server` the server's process, where the system tells of it, `resource`
    what its spans were sent with.
    """

    log: Path
    is_private: bool
    started_ms: int
    capture: Capture
    server: Process | None = None
    resource: Mapping[str, str] | None = None

    def is_alive(self) -> bool:
        """Whether the server is still there, as far as the system tells."""
        return self.server is not None and running(self.server.pid) == self.server


class RunFolder:
    """A run's folder, locked by this process until `release`, or until the last process that inherited `lock` ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock
        self._claims: list[Claim] = []

    @classmethod
    def create(cls, state_folder: Path, log: Path | None, started_ms: int, capture: Capture) -> Self:
        """Make a new run's folder (0700) and lock it. `log` None: the server is to log there.

        Raises StateError when that is not possible.
        """
        runs = state_folder / RUNS
        prepare_state_folder(state_folder)
        prepare_state_folder(runs)
        name = secrets.token_hex(8)
        path, making = runs / name, runs / f".{name}"
        folder = cls(making, -1)
        try:
            making.mkdir(0o700)
            folder.lock = _locked(making)
            folder.describe(Description(log or path / LOG, log is None, started_ms, capture))
            # Only now can others see it, locked as it is.
            making.rename(path)
        except (OSError, StateError) as error:
            folder.release()
            shutil.rmtree(making, ignore_errors=True)
            if isinstance(error, StateError):
                raise
            raise StateError(
                f"cannot make {making}: {reason(error)}", "give another folder with --state-dir"
            ) from error
        folder.path = path
        return folder

    @classmethod
    def inherited(cls, path: Path, lock: int) -> Self:
        """The folder that the process which started this one made; `lock` is its descriptor here."""
        return cls(path, lock)

    def describe(self, description: Description) -> None:
        """Write down what a later run has to know. Raises StateError when that is not possible."""
        values = {
            "log": str(description.log),
            "private": description.is_private,
            "started_ms": description.started_ms,
            "capture": description.capture.name,
            "server": asdict(description.server) if description.server else None,
            "resource": dict(description.resource) if description.resource else None,
        }
        new = self.path / f"{DESCRIPTION}.new"
        descriptor = open_own_file(new)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.truncate()
                json.dump(values, file)
            new.replace(self.path / DESCRIPTION)
        except OSError as error:
            raise StateError(f"cannot write {new}: {reason(error)}", "free some space") from error

    def description(self) -> Description:
        """What the run wrote down. Raises StateError when it cannot be read."""
        path = self.path / DESCRIPTION
        try:
            values = json.loads(path.read_bytes())
            server, resource = values["server"], values["resource"]
            return Description(
                Path(values["log"]),
                bool(values["private"]),
                int(values["started_ms"]),
                Capture[values["capture"]],
                Process.from_json(server) if server else None,
                {str(name): str(value) for name, value in resource.items()} if resource else None,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{path} cannot be read ({type(error).__name__})", f"remove {self.path} if you do not need its log"
            ) from error

    def is_log_claimed(self) -> bool:
        """Whether a living run follows the same log; a log has no word for the process that wrote a line."""
        return str(self.description().log) in claimed_paths(claims_folder())

    def claim_log(self) -> None:
        """Keep a `tail` of the default places away from the log, which the server holds open, while this process lives.

        Raises StateError when that is not possible.
        """
        folder = claims_folder()
        try:
            self._claims.append(claim(folder, [str(self.description().log)]))
        except OSError as error:
            raise StateError(
                f"cannot claim the log in {folder}: {reason(error)}", "a `tail` may export the same sessions again"
            ) from error

    def remove(self) -> None:
        """Remove it with all that lies in it: everything was delivered. Raises StateError when that is not possible."""
        # Under a name that nobody looks for, so that a kill half-way leaves nothing that looks like a run.
        gone = self.path.with_name(f".{self.path.name}")
        try:
            self.path.rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            raise StateError(f"cannot remove {self.path}: {reason(error)}", "remove it yourself") from error

    def release(self) -> None:
        """Let go of it. Releasing twice is allowed."""
        for one in self._claims:
            one.release()
        self._claims.clear()
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


def dead_runs(state_folder: Path) -> Iterator[RunFolder]:
    """The folders of runs that are over and left something, each locked by this process from now on."""
    for path in _folders(state_folder):
        try:
            lock = _locked(path)
        except (OSError, StateError):
            continue  # it is alive, or was removed just now
        folder = RunFolder(path, lock)
        if (path / DESCRIPTION).exists():
            yield folder
        else:
            folder.release()


def run_folders(state_folder: Path) -> Iterator[tuple[Path, bool]]:
    """The folders of all runs that are not done, and whether a process holds each. Nothing is changed."""
    for path in _folders(state_folder):
        try:
            descriptor = os.open(path / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # it was removed just now, or is no run
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            is_held = False
        except BlockingIOError:
            is_held = True
        finally:
            os.close(descriptor)
        yield path, is_held


def clear_halves(state_folder: Path, now_s: float) -> None:
    """Remove what a kill left of folders that were being made or removed; `now_s` is Unix time."""
    for path in _folders(state_folder, is_hidden=True):
        try:
            if now_s - path.stat().st_mtime > HALF_FOR_S:
                lock = _locked(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
        except (OSError, StateError):
            continue  # somebody is at it


def _folders(state_folder: Path, *, is_hidden: bool = False) -> list[Path]:
    try:
        with os.scandir(state_folder / RUNS) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.startswith(".") is is_hidden)
    except OSError:
        return []


def _locked(folder: Path) -> int:
    """The descriptor of the folder's lock, held. Raises BlockingIOError when another process holds it."""
    descriptor = open_own_file(folder / LOCK)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Who only asks whether it is held has a shared lock for that moment: no reason to give up.
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            else:
                return descriptor
    except OSError:
        os.close(descriptor)
        raise
