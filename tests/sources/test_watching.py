"""Being woken when a log grows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otel_bridge.sources import Follower, NoticeKind, Start
from otel_bridge.sources.watching import Pace, Watcher
from tests.sources.following import append, entry, rotate
from tests.waiting import wait_until

NEVER_MS = 3_600_000


class Woken:
    """A follower in the hands of a watcher; what was read is kept."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.ready = threading.Event()
        self.data = b""

    def read(self) -> bytes:
        """All bytes so far."""
        if self.ready.is_set():
            self.ready.clear()
            while chunks := self.follower.read():
                self.data += b"".join(chunk.data for chunk in chunks)
        return self.data


@contextmanager
def watching(pattern: Path, pace: Pace, prepare: Callable[[Watcher], None] = lambda _: None) -> Iterator[Woken]:
    """Watch until the block ends."""
    stop = threading.Event()
    woken = Woken(Follower([str(pattern)], start=Start.BEGINNING))
    watcher = Watcher(woken.follower, woken.ready.set, pace)
    prepare(watcher)
    thread = threading.Thread(target=watcher.run, args=(stop,))
    thread.start()
    try:
        yield woken
    finally:
        stop.set()
        thread.join(10)
        woken.follower.close()
    assert not thread.is_alive()


@pytest.mark.parametrize("quiet_after_s", [60.0, 0.0], ids=["busy", "quiet"])
def test_a_line_wakes(tmp_path: Path, quiet_after_s: float) -> None:
    """What is written is read though no sweep comes: the system's word is enough, busy or quiet."""
    with watching(tmp_path, Pace(quiet_after_s=quiet_after_s, sweep_ms=NEVER_MS)) as woken:
        append(tmp_path / "server.log", entry(1))
        wait_until(lambda: woken.read() == entry(1), "the first line is read")
        append(tmp_path / "server.log", entry(2))
        wait_until(lambda: woken.read() == entry(1) + entry(2), "the second line is read")
        rotate(tmp_path / "server.log")
        append(tmp_path / "server.log", entry(3))
        wait_until(lambda: woken.read().endswith(entry(3)), "the line after a rotation is read")


def test_a_log_below_node_modules_wakes(tmp_path: Path) -> None:
    """The server's own default folder lies below `node_modules`, which watchers like to leave out."""
    folder = tmp_path / "node_modules" / "@debugmcp" / "logs"
    folder.mkdir(parents=True)
    with watching(folder, Pace(sweep_ms=NEVER_MS)) as woken:
        append(folder / "server.log", entry(1))
        wait_until(lambda: woken.read() == entry(1), "the line is read")


def test_what_wakes_nobody_is_found_by_the_sweep(tmp_path: Path) -> None:
    """On a file system that reports nothing, looking now and then is enough."""

    def be_deaf(watcher: Watcher) -> None:
        watcher._open = lambda folders: type(watcher)._open(watcher, [])  # type: ignore[method-assign]

    with watching(tmp_path, Pace(sweep_ms=20), be_deaf) as woken:
        append(tmp_path / "server.log", entry(1))
        wait_until(lambda: woken.read() == entry(1), "the line is read")


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        ("Too many open files (os error 24)", "fs.inotify.max_user_instances"),
        ("OS file watch limit reached.", "fs.inotify.max_user_watches"),
    ],
)
def test_without_watches_it_polls_and_says_which_limit(tmp_path: Path, error: str, limit: str) -> None:
    """Where the system has no watches left, the limit is named once, and polling finds everything."""

    def be_refused(watcher: Watcher) -> None:
        def refuse(folders: list[str]) -> object:
            raise OSError(error)

        watcher._open = refuse  # type: ignore[method-assign, assignment]

    with watching(tmp_path, Pace(poll_ms=10), be_refused) as woken:
        append(tmp_path / "server.log", entry(1))
        wait_until(lambda: woken.read() == entry(1), "the line is read")
        notices = woken.follower.notices()

    assert [notice.kind for notice in notices] == [NoticeKind.WATCH_LIMIT]
    assert limit in notices[0].text


def test_a_folder_that_comes_later_is_watched(tmp_path: Path) -> None:
    """A folder that was missing, or was made anew, is watched once it is there."""
    log = tmp_path / "logs" / "server.log"
    with watching(log, Pace(sweep_ms=50)) as woken:
        log.parent.mkdir()
        append(log, entry(1))
        wait_until(lambda: woken.read() == entry(1), "the line in the new folder is read")
        log.unlink()
        log.parent.rmdir()
        wait_until(lambda: woken.follower.folders() == frozenset(), "the folder is gone")
        log.parent.mkdir()
        append(log, entry(2))
        wait_until(lambda: woken.read().endswith(entry(2)), "the line in the folder that was made anew is read")


def test_looking_goes_on_while_nobody_reads(tmp_path: Path) -> None:
    """Files are opened before rotation deletes them, though nobody reads."""
    log = tmp_path / "server.log"
    with watching(log, Pace()) as woken:
        for number in range(1, 7):
            append(log, entry(number))
            wait_until(lambda n=number: woken.follower.statistics().files == n, f"file {number} is open")  # type: ignore[misc]
            rotate(log)
        append(log, entry(7))
        wait_until(lambda: woken.follower.statistics().files == 7, "the last file is open")
        wait_until(lambda: woken.read() == b"".join(entry(number) for number in range(1, 8)), "all is read")
