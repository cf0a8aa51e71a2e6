"""State that cannot be written or must not be trusted, as an unprivileged user."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from otel_bridge.state.database import SCHEMA_VERSION
from otel_bridge.testing import CannedReply, Receiver, Request
from tests.faults.spans import by_id, check_same, expected, wait_for_all
from tests.faults.unprivileged import unprivileged
from tests.faults.writing import write_sessions
from tests.real.bridge import TailProcess, run
from tests.waiting import wait_until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one session, 39 spans."""
    path = tmp_path / "logs" / "server.log"
    write_sessions(path, 1)
    return path


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend that takes everything."""
    with Receiver() as receiver:
        yield receiver


def tail(folder: Path, log: Path, receiver: Receiver) -> TailProcess:
    """A bridge that follows `log` from its beginning."""
    words = (log, "--endpoint", receiver.endpoint, "--from", "beginning")
    return TailProcess(folder / "bridge", *words, wrapped=unprivileged())


def delivered(bridge: TailProcess, receiver: Receiver, log: Path) -> bool:
    """Whether everything in the log is delivered, and the state says so."""
    status = bridge.status
    return bool(status.files) and len(receiver.spans) >= len(expected(log)) and status.lag_bytes == 0


# a folder in which nothing can be made


@pytest.mark.parametrize("exists", [True, False], ids=["the folder itself", "the one above it"])
def test_a_folder_that_cannot_be_written_is_said_at_the_start(
    exists: bool, log: Path, receiver: Receiver, tmp_path: Path
) -> None:
    """In one line, with exit status 1; nothing was sent that could not be remembered."""
    above = tmp_path / "above"
    state_dir = above / "state"
    (state_dir if exists else above).mkdir(parents=True)
    (state_dir if exists else above).chmod(0o500)

    ended = run("tail", log, "--endpoint", receiver.endpoint, "--state-dir", state_dir, wrapped=unprivileged())

    assert ended.returncode == 1
    assert re.fullmatch(rf"otel-bridge: [^\n]*{re.escape(str(state_dir))}[^\n]*\n", ended.stderr), ended.stderr
    assert receiver.requests == []


def test_a_folder_that_becomes_read_only_stops_nothing(log: Path, receiver: Receiver, tmp_path: Path) -> None:
    """Delivery goes on; after a kill nothing is lost, whatever could be written meanwhile."""
    with tail(tmp_path, log, receiver) as bridge:
        wait_until(lambda: delivered(bridge, receiver, log), "the first session is delivered")
        for path in (*bridge.state_dir.iterdir(), bridge.state_dir):
            path.chmod(path.stat().st_mode & ~0o222)
        write_sessions(log, 2)
        wait_for_all(receiver, expected(log))
        bridge.kill()
        bridge.state_dir.chmod(0o700)
        for path in bridge.state_dir.iterdir():
            path.chmod(0o600)
        write_sessions(log, 1)
        bridge.start()
        wait_for_all(receiver, expected(log))
        wait_until(lambda: delivered(bridge, receiver, log), "the state is written again")
        assert bridge.stop() == 0


def test_a_state_that_is_deleted_under_it_stops_nothing(log: Path, receiver: Receiver, tmp_path: Path) -> None:
    """It is said once; delivery goes on, and a restart sends again what was delivered, under the same ids."""
    with tail(tmp_path, log, receiver) as bridge:
        wait_until(lambda: delivered(bridge, receiver, log), "the first session is delivered")
        shutil.rmtree(bridge.state_dir)
        write_sessions(log, 2)
        wait_for_all(receiver, expected(log))
        wait_until(lambda: "was moved or deleted while this bridge used it" in bridge.output, "it says so")
        assert bridge.stop() == 0
        assert bridge.output.count("was moved or deleted") <= 2  # once, and once with a count at the end
        bridge.start()
        wait_until(lambda: delivered(bridge, receiver, log), "all is sent again")
        check_same(by_id(receiver.spans), expected(log))
        assert bridge.stop() == 0


# a file that is not what it should be


def cut(path: Path) -> None:
    """As a full disk or a broken copy leaves it."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    """A page in the middle is garbage."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096 * 4)


def no_database(path: Path) -> None:
    """Somebody else's text."""
    path.write_text("# my notes\n" * 500)


def foreign(path: Path) -> None:
    """Another program's database."""
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');")


def newer(path: Path) -> None:
    """Written by a later version of the bridge."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def a_folder(path: Path) -> None:
    """Not even a file."""
    path.unlink()
    path.mkdir()


def a_link(path: Path) -> None:
    """A way to have the bridge write to somebody else's file."""
    path.rename(path.with_name("elsewhere.db"))
    path.symlink_to("elsewhere.db")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "is damaged"),
        (scribble, "is damaged"),
        (no_database, "no database at all"),
        (foreign, "a database of another program"),
        (newer, "was written by a newer otel-bridge"),
        (a_folder, "is no regular file"),
        (a_link, "is no regular file"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_an_error_with_a_way_out(
    damage: Callable[[Path], None], says: str, log: Path, receiver: Receiver, tmp_path: Path
) -> None:
    """It is named and left as it is, nothing is sent, never silently from zero; without it the bridge begins anew."""
    with tail(tmp_path, log, receiver) as bridge:
        wait_until(lambda: delivered(bridge, receiver, log), "the session is delivered")
        assert bridge.stop() == 0
    path = bridge.state_dir / "state.db"
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    requests = len(receiver.requests)
    words = ("--endpoint", receiver.endpoint, "--from", "beginning", "--state-dir", bridge.state_dir)

    ended = run("tail", log, *words, wrapped=unprivileged())

    assert ended.returncode == 1
    assert re.fullmatch(rf"otel-bridge: {re.escape(str(path))} [^\n]*; [^\n]+\n", ended.stderr), ended.stderr
    assert says in ended.stderr
    assert len(receiver.requests) == requests
    assert (path.read_bytes() if path.is_file() else b"") == before

    path.rename(tmp_path / "moved away")  # the way out
    write_sessions(log, 1)
    with bridge:
        wait_for_all(receiver, expected(log))
        assert bridge.stop() == 0


# a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Takes all the room that is left; returns the file that has it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler


@pytest.mark.real("tmpfs")
def test_a_full_disk_stops_nothing(log: Path, receiver: Receiver, small_disk: Path, tmp_path: Path) -> None:
    """Delivery goes on, it is said once; a kill then costs a second sending; with room again the state is written."""
    with tail(small_disk, log, receiver) as bridge:
        wait_until(lambda: delivered(bridge, receiver, log), "the first session is delivered")
        filler = fill(small_disk)
        for _ in range(20):
            write_sessions(log, 1)
            wait_for_all(receiver, expected(log))
        wait_until(lambda: "cannot write" in bridge.output, "the full disk is noticed")
        assert bridge.output.count("cannot write") == 1
        assert bridge.status.holder is not None  # who asks needs no room
        assert "delivery goes on, but after a crash this would be sent again" in bridge.output
        bridge.kill()
        filler.unlink()
        bridge.start()
        write_sessions(log, 1)
        wait_until(lambda: delivered(bridge, receiver, log), "the state is written")
        check_same(by_id(receiver.spans), expected(log))

        filler = fill(small_disk)
        write_sessions(log, 20)
        wait_for_all(receiver, expected(log))
        filler.unlink()
        wait_until(lambda: delivered(bridge, receiver, log), "the state is written without a restart")
        assert bridge.stop() == 0


@pytest.mark.real("tmpfs")
def test_a_full_disk_at_the_start_is_an_error(log: Path, receiver: Receiver, small_disk: Path) -> None:
    """One line and exit status 1: without a state every restart would begin anew."""
    filler = fill(small_disk)
    words = ("--endpoint", receiver.endpoint, "--from", "beginning", "--state-dir", small_disk / "state")

    ended = run("tail", log, *words, wrapped=unprivileged())

    assert ended.returncode == 1
    assert re.fullmatch(r"otel-bridge: cannot [^\n]*; make room on its disk[^\n]*\n", ended.stderr), ended.stderr
    assert receiver.requests == []
    filler.unlink()


@pytest.mark.real("tmpfs")
def test_a_refused_span_waits_for_room(log: Path, small_disk: Path) -> None:
    """While there is no room for a dead letter nothing is dropped: delivery waits, and says for what."""
    wanted = expected(log)
    poison = sorted(wanted)[7]
    is_full = threading.Event()

    def reply(request: Request) -> CannedReply:
        assert is_full.wait(30)
        return CannedReply(400 if poison in by_id(request.spans) else 200)

    with Receiver(reply) as receiver, tail(small_disk, log, receiver) as bridge:
        wait_until(lambda: bridge.status.files, "the bridge is up")
        filler = fill(small_disk)
        is_full.set()
        wait_until(lambda: re.search(r"delivery to \S+ waits.*dead-letters", bridge.output), "it waits for room")
        filler.unlink()
        wait_until(lambda: bridge.status.refused_spans == 1 and bridge.status.lag_bytes == 0, "it goes on")
        assert (bridge.status.kept.spans, bridge.status.lost_spans) == (1, 0)
        assert bridge.stop() == 0
