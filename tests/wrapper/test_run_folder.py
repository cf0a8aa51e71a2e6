"""The folder of a run: private, locked while it is alive, taken up once."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from otel_bridge.errors import StateError
from otel_bridge.sessions.capture import Capture
from otel_bridge.sources.processes import running
from otel_bridge.wrapper.run_folder import (
    DESCRIPTION,
    HALF_FOR_S,
    RUNS,
    Description,
    RunFolder,
    clear_halves,
    dead_runs,
)


def made(state: Path, log: Path | None = None) -> RunFolder:
    """A new run's folder."""
    return RunFolder.create(state, log, 1_700_000_000_000, Capture.ARGUMENTS)


def test_a_run_has_a_private_folder_with_the_servers_log(tmp_path: Path) -> None:
    """Nobody else can look into it, and it says what a later run has to know."""
    folder = made(tmp_path / "state")

    found = folder.description()
    assert Description(folder.path / "server.log", True, 1_700_000_000_000, Capture.ARGUMENTS) == found
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.path.iterdir()} == {0o600}
    folder.release()


def test_a_log_that_the_user_chose_stays_where_it_is(tmp_path: Path) -> None:
    """Only the state lies in the run's folder."""
    folder = made(tmp_path / "state", tmp_path / "mine.log")

    found = folder.description()
    assert (found.log, found.is_private) == (tmp_path / "mine.log", False)
    folder.release()


def test_a_living_run_is_nobody_elses(tmp_path: Path) -> None:
    """As long as one process holds the lock: the one that made it, or one that inherited it."""
    folder = made(tmp_path)
    assert list(dead_runs(tmp_path)) == []

    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(folder.lock,)) as heir:
        folder.release()
        assert list(dead_runs(tmp_path)) == []
        assert heir.stdin is not None
        heir.stdin.close()
        heir.wait()

    (found,) = dead_runs(tmp_path)
    assert found.path == folder.path
    found.release()


def test_a_dead_run_is_taken_up_by_one_only(tmp_path: Path) -> None:
    """Whoever comes second finds it locked, and after it was removed finds nothing."""
    made(tmp_path).release()

    (found,) = dead_runs(tmp_path)
    assert list(dead_runs(tmp_path)) == []
    found.remove()
    found.release()
    assert list(dead_runs(tmp_path)) == []
    assert list((tmp_path / RUNS).iterdir()) == []


def test_a_servers_process_is_known_again(tmp_path: Path) -> None:
    """Alive while it runs; a later process with its number is not it."""
    folder = made(tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as server:
        folder.describe(
            Description(tmp_path / "log", False, 1, Capture.FULL, running(server.pid)),
        )
        assert folder.description().is_alive()
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
    assert not folder.description().is_alive()
    assert not Description(tmp_path / "log", False, 1, Capture.FULL).is_alive()
    folder.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"log": "/x"}', '{"log": 1, "private": 0, "started_ms": {}}'])
def test_a_description_that_is_torn_is_named(tmp_path: Path, text: str) -> None:
    """The message says which file it is, and that its folder can go."""
    folder = made(tmp_path)
    (folder.path / DESCRIPTION).write_text(text)

    with pytest.raises(StateError, match=DESCRIPTION):
        folder.description()
    folder.release()


def test_a_state_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    """A log lies there that holds all that the program's variables held."""
    open_to_all = tmp_path / "state"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)

    with pytest.raises(StateError, match="other users"):
        made(open_to_all)
    assert list(open_to_all.iterdir()) == []


def test_what_a_kill_left_half_is_cleared_away(tmp_path: Path) -> None:
    """Not while somebody may be at it: it is young, or locked."""
    half, young = made(tmp_path), made(tmp_path)
    for folder in (half, young):
        folder.path = folder.path.rename(folder.path.with_name(f".{folder.path.name}"))
    half_s = half.path.stat().st_mtime
    young.release()
    os.utime(young.path, (half_s + HALF_FOR_S, half_s + HALF_FOR_S))

    clear_halves(tmp_path, half_s + HALF_FOR_S + 1)
    assert half.path.exists()
    half.release()
    clear_halves(tmp_path, half_s + HALF_FOR_S + 1)

    assert list((tmp_path / RUNS).iterdir()) == [young.path]
