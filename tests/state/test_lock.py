"""One bridge a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_bridge.errors import StateError
from otel_bridge.state.lock import LOCK, FolderLock, Holder, holder_of
from otel_bridge.state.store import StateStore
from tests.state.processes import other_bridge


def test_second_bridge_is_told_which_process_has_the_folder(tmp_path: Path) -> None:
    """The second one gets an error with the pid of the first and what to do; exit status 1."""
    with other_bridge(tmp_path) as first:
        assert holder_of(tmp_path) == Holder(first.pid)
        with pytest.raises(
            StateError, match=f"{tmp_path} is in use by process {first.pid}; stop that bridge, or give"
        ) as caught:
            StateStore.open(tmp_path)

    assert caught.value.exit_code == 1


def test_killed_bridge_leaves_no_lock(tmp_path: Path) -> None:
    """A lock goes with its process, also by SIGKILL: the next bridge starts, and nobody counts as running."""
    with other_bridge(tmp_path) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()

        assert holder_of(tmp_path) is None
        with StateStore.open(tmp_path):
            assert holder_of(tmp_path) == Holder(os.getpid())


def test_one_process_cannot_take_the_folder_twice(tmp_path: Path) -> None:
    """Two stores on one folder in one process are two bridges as well."""
    with StateStore.open(tmp_path), pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        StateStore.open(tmp_path)
    with StateStore.open(tmp_path):
        pass


def test_asking_who_has_the_folder_makes_nobody_give_up(tmp_path: Path) -> None:
    """A bridge that starts while another process asks for the holder, over and over, starts all the same."""
    FolderLock(tmp_path).release()
    ask = (
        "import sys\nfrom pathlib import Path\nfrom otel_bridge.state.lock import holder_of\n"
        "print('asks', flush=True)\nwhile True: holder_of(Path(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", ask, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(2000):
            FolderLock(tmp_path).release()
        process.kill()


def test_holder_that_did_not_say_its_pid_is_another_process(tmp_path: Path) -> None:
    """A lock file with other text in it (a holder just about to write) still gives a message."""
    lock = FolderLock(tmp_path)
    (tmp_path / LOCK).write_text("no number\n")

    assert str(holder_of(tmp_path)) == "another process"
    lock.release()


def test_folder_without_lock_has_no_holder(tmp_path: Path) -> None:
    """Asking makes no lock file."""
    assert holder_of(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_asking_does_not_wait_for_a_fifo(tmp_path: Path) -> None:
    """A FIFO under the lock's name is opened without waiting for who writes to it."""
    os.mkfifo(tmp_path / LOCK)

    assert holder_of(tmp_path) is None


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_lock_that_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A folder, FIFO or link under the lock's name is refused, and never followed or waited for."""
    make(tmp_path / LOCK)

    with pytest.raises(StateError, match=f"{tmp_path / LOCK} is no regular file; move it away"):
        StateStore.open(tmp_path)
