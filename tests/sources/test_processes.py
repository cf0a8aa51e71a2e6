"""Who writes to a log, and whether he has ended; on real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from otel_bridge.sources.files import LocalFiles
from otel_bridge.sources.processes import Holders, Process, has_ended, running

_HOLD = "import sys; held = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"


@contextmanager
def holding(path: Path, mode: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has a file open until the block ends."""
    command = [sys.executable, "-c", _HOLD, str(path), mode, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_writers_are_found_and_readers_are_not(tmp_path: Path) -> None:
    """A file's holders are the processes that have it open for writing, by whatever name; readers do not count."""
    log = tmp_path / "server.log"
    log.touch()
    key = LocalFiles().stat(str(log)).key
    with holding(log, "a") as writer, holding(log, "r"), log.open("a"):
        log.rename(tmp_path / "renamed.log")
        found = Holders().holders(key)
        in_use = Holders().in_use(key)

    assert [process.pid for process in found or ()] == [writer.pid]
    assert in_use is True
    assert Holders().in_use(key) is False
    assert Holders().holders(key) == frozenset()


def test_a_process_is_seen_to_have_ended(tmp_path: Path) -> None:
    """A process that was seen alive has ended when it is gone, also while it waits to be reaped."""
    with holding(tmp_path / "a.log", "a") as process:
        seen = running(process.pid)
        assert seen is not None
        assert not has_ended(seen)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert has_ended(seen)
    assert has_ended(seen)


def test_a_process_id_that_is_used_again_is_another_process() -> None:
    """The same id with another start time, or in another boot, is not the process that was seen."""
    this = running(os.getpid())
    assert this is not None

    assert not has_ended(this)
    assert has_ended(Process(this.pid, this.start_ticks + 1, this.boot))
    assert has_ended(Process(this.pid, this.start_ticks, "another boot"))


def test_where_the_system_tells_nothing_nothing_is_known(tmp_path: Path) -> None:
    """Without `/proc` holders are unknown, and nobody is said to have ended."""
    holders = Holders(proc=str(tmp_path / "none"))
    key = LocalFiles().stat(str(tmp_path)).key

    assert holders.holders(key) is None
    assert holders.in_use(key) is None
    assert holders.written_paths(b"x") == ()
    assert not has_ended(Process(1, 1, ""), str(tmp_path / "none"))


def test_asking_is_limited(tmp_path: Path) -> None:
    """The system is asked at most once in so many seconds; in between the last answer holds."""
    log = tmp_path / "server.log"
    log.touch()
    key = LocalFiles().stat(str(log)).key
    now = {"s": 100.0}
    holders = Holders(refresh_s=5, monotonic_s=lambda: now["s"])
    before = holders.in_use(key)
    with holding(log, "a"):
        soon = holders.in_use(key)
        now["s"] += 5
        later = holders.in_use(key)

    assert (before, soon, later) == (False, False, True)


def test_files_are_found_by_their_writers_command(tmp_path: Path) -> None:
    """The paths that processes with a word in their command line write to are found."""
    with holding(tmp_path / "a.log", "a", "some-server"), holding(tmp_path / "b.log", "a"):
        paths = Holders().written_paths(b"some-server")

    assert [path for path in paths if path.startswith(str(tmp_path))] == [str(tmp_path / "a.log")]


def test_a_process_survives_json() -> None:
    """A process that was saved as JSON and read again is the same; anything else is refused."""
    process = Process(1, 2, "boot")

    assert Process.from_json(json.loads(json.dumps(asdict(process)))) == process
    with pytest.raises(ValueError, match="not a saved process"):
        Process.from_json({"pid": "1"})
