"""What is followed, and where it is begun."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from otel_bridge.sources import NoticeKind, Only, Start
from otel_bridge.sources.files import Handle, LocalFiles, Name
from tests.sources.following import BEGAN_MS, Following, append, entries, entry, rotate


def read_names(tail: Following) -> set[str]:
    """The names of the files of which something was given out."""
    tail.close()
    return {Path(chunk.path).name for chunk in tail.chunks if chunk.data}


def test_a_folder_stands_for_its_logs(tmp_path: Path) -> None:
    """Of a folder the logs are followed, not other files, and not the folders below."""
    for name in ("a.log", "b1.log", "c.log.1", "d.txt", "e.log.gz", "below/f.log", "g.ndjson"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        append(tmp_path / name, entry(1, session=name))
    tail = Following([tmp_path])
    tail.drain()
    tail.drain()

    assert read_names(tail) == {"a.log", "b1.log", "c.log.1"}


def test_a_glob_stands_for_what_it_matches(tmp_path: Path) -> None:
    """A glob is looked at again and again: files and folders that match it later are followed too."""
    (tmp_path / "one").mkdir()
    append(tmp_path / "one" / "a.log", entry(1))
    append(tmp_path / "one" / "b.txt", entry(2))
    tail = Following([tmp_path / "*" / "*.log"])
    tail.drain()
    (tmp_path / "two").mkdir()
    append(tmp_path / "two" / "c.log", entry(3))
    append(tmp_path / "one" / "d.log", entry(4))
    tail.drain(after_s=2.1)

    assert read_names(tail) == {"a.log", "c.log", "d.log"}


def test_a_file_with_the_characters_of_a_glob_is_meant_itself(tmp_path: Path) -> None:
    """A path that exists is never taken for a pattern."""
    append(tmp_path / "a[1].log", entry(1))
    append(tmp_path / "a1.log", entry(2))
    tail = Following([tmp_path / "a[1].log"])

    assert tail.drain() == entry(1)
    tail.close()


def test_links_and_second_names_are_read_once(tmp_path: Path) -> None:
    """A file is read once, however many names and symbolic links lead to it."""
    append(tmp_path / "a.log", entries(1, 2))
    (tmp_path / "b.log").hardlink_to(tmp_path / "a.log")
    (tmp_path / "c.log").symlink_to(tmp_path / "a.log")
    tail = Following([tmp_path, tmp_path / "a.log", tmp_path / "c.log"])

    assert tail.drain() == entries(1, 2)
    append(tmp_path / "a.log", entry(3))
    assert tail.drain() == entry(3)
    tail.close()


def test_a_link_means_the_log_that_it_points_to(tmp_path: Path) -> None:
    """The target of a symbolic link is followed through its own rotation, in its own folder."""
    (tmp_path / "real").mkdir()
    log = tmp_path / "real" / "server.log"
    append(log, entry(1))
    (tmp_path / "current").symlink_to(log)
    tail = Following([tmp_path / "current"])
    tail.drain()
    append(log, entry(2))
    rotate(log)
    append(log, entry(3))

    assert tail.drain() == entries(2, 3)
    tail.close()


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A FIFO, a folder and a device with a log's name neither block nor are read."""
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "device.log").symlink_to("/dev/zero")
    (tmp_path / "nowhere.log").symlink_to(tmp_path / "missing")
    append(tmp_path / "a.log", entry(1))
    tail = Following([tmp_path, tmp_path / "fifo.log", "/dev/zero"])

    assert tail.drain() == entry(1)
    tail.close()


def test_other_users_files_are_left_alone(tmp_path: Path) -> None:
    """Where only one user's logs are meant, another's are not read."""
    append(tmp_path / "a.log", entry(1))
    mine = Following([tmp_path], only=Only(owner=os.getuid()))
    others = Following([tmp_path], only=Only(owner=os.getuid() + 1))

    assert (mine.drain(), others.drain()) == (entry(1), b"")
    mine.close()
    others.close()


def test_what_somebody_else_follows_is_left_to_him(tmp_path: Path) -> None:
    """A claimed log and its rotated parts are not read; once free, the log is followed from its end."""
    log = tmp_path / "server.log"
    append(log, entry(1))
    append(tmp_path / "server1.log", entry(0))
    append(tmp_path / "other.log", entry(9))
    claimed = {str(log)}
    tail = Following([tmp_path], only=Only(but=lambda: frozenset(claimed)))
    first = tail.drain()
    append(log, entry(2))
    claimed.clear()
    second = tail.drain(after_s=2.1)
    append(log, entry(3))

    assert (first, second, tail.drain()) == (entry(9), b"", entry(3))
    tail.close()


@pytest.mark.parametrize(
    ("start", "age_s", "in_use", "expected"),
    [
        (Start.BEGINNING, 9_999, False, entries(1, 2)),
        (Start.NOW, 1, True, b""),
        (Start.AUTO, 3_500, False, entries(1, 2)),
        (Start.AUTO, 3_700, False, b""),
        (Start.AUTO, 99_999, True, entries(1, 2)),
        (Start.AUTO, 99_999, None, b""),
    ],
)
def test_where_a_log_is_begun(tmp_path: Path, start: Start, age_s: int, in_use: bool | None, expected: bytes) -> None:
    """A log that is old and that nobody has open is begun at its end, others at their beginning, unless one is told."""
    log = tmp_path / "server.log"
    append(log, entries(1, 2))
    now_s = log.stat().st_mtime
    os.utime(log, (now_s, now_s - age_s))
    tail = Following([log], start=start, in_use=lambda _: in_use, unix_s=now_s)

    assert tail.drain() == expected
    append(log, entry(3))
    assert tail.drain() == entry(3)
    assert tail.kinds() == ([] if expected else [NoticeKind.STARTED])
    tail.close()


def test_old_logs_are_said_in_one_line(tmp_path: Path) -> None:
    """However many logs are begun at their end, that is one notice, with how many were begun where."""
    for letter in "abcde":
        append(tmp_path / f"{letter}.log", entry(1))
        os.utime(tmp_path / f"{letter}.log", (1, 1))
    append(tmp_path / "new.log", entry(1))
    tail = Following([tmp_path], start=Start.AUTO, unix_s=(tmp_path / "new.log").stat().st_mtime)
    tail.drain()

    (notice,) = tail.notices
    assert "1 log files from their beginning and 5 older ones from their end" in notice.text
    assert "--from beginning" in notice.text
    tail.close()


def test_what_appears_after_now_is_read_from_its_beginning(tmp_path: Path) -> None:
    """With `now`, a log that is begun later, and the files that follow a rotation, are read whole."""
    log = tmp_path / "server.log"
    append(log, entry(1))
    tail = Following([tmp_path], start=Start.NOW, unix_s=0)
    tail.drain()
    append(tmp_path / "later.log", entry(2))
    append(log, entry(3))
    rotate(log)
    append(log, entry(4))

    assert sorted(tail.drain().splitlines()) == sorted((entry(2) + entries(3, 4)).splitlines())
    tail.close()


def test_a_log_that_is_begun_at_its_end_keeps_the_line_that_is_being_written(tmp_path: Path) -> None:
    """The end of a log is the end of its last whole line: a half line comes out whole."""
    log = tmp_path / "server.log"
    append(log, entries(1, 2) + b'{"half":')
    tail = Following([log], start=Start.NOW)
    tail.drain()
    append(log, b"1}\n")
    tail.drain()
    tail.close()

    assert b"".join(chunk.data for chunk in tail.chunks) == b'{"half":1}\n'


def test_files_of_one_rotation_are_one_log_oldest_first(tmp_path: Path) -> None:
    """A log that was rotated before it was followed is one chain, from its oldest part on."""
    append(tmp_path / "server2.log", entries(1, 2))
    append(tmp_path / "server1.log", entries(3, 4))
    append(tmp_path / "server.log", entries(5, 6))
    tail = Following([tmp_path])

    assert tail.drain() == entries(1, 6)
    assert len({chunk.chain for chunk in tail.chunks}) == 1
    tail.close()


def test_a_process_id_that_ends_in_a_digit_is_no_rotation(tmp_path: Path) -> None:
    """`…-1231.log` is process 1231's own log when it was written at the same time as process 123's."""
    append(tmp_path / "debug-mcp-server-123.log", entry(1, session="a") + entry(100, session="a"))
    append(tmp_path / "debug-mcp-server-1231.log", entry(2, session="b") + entry(50, session="b"))
    tail = Following([tmp_path])
    tail.drain()

    assert len({chunk.chain for chunk in tail.chunks}) == 2
    tail.close()


def test_a_process_id_that_ends_in_a_digit_can_be_a_rotation(tmp_path: Path) -> None:
    """`…-1231.log` is the first rotation of process 123's log when that one goes on with its session."""
    append(tmp_path / "debug-mcp-server-1231.log", entry(1) + entry(50))
    append(tmp_path / "debug-mcp-server-123.log", entry(51) + entry(60))
    tail = Following([tmp_path])

    assert tail.drain() == entry(1) + entry(50) + entry(51) + entry(60)
    assert len({chunk.chain for chunk in tail.chunks}) == 1
    tail.close()


def test_a_log_of_its_own_that_appears_later_is_no_rotation(tmp_path: Path) -> None:
    """A new process whose id continues another's digits begins a log of its own beside it."""
    append(tmp_path / "debug-mcp-server-123.log", entry(1, session="a"))
    tail = Following([tmp_path])
    tail.drain()
    append(tmp_path / "debug-mcp-server-1231.log", entry(2, session="b"))
    tail.drain(after_s=2)
    append(tmp_path / "debug-mcp-server-123.log", entry(3, session="a"))
    tail.drain()

    assert len({chunk.chain for chunk in tail.chunks}) == 2
    assert not any(chunk.late for chunk in tail.chunks)
    tail.close()


def test_another_log_beside_the_one_that_was_named_is_not_read(tmp_path: Path) -> None:
    """Whoever names one log does not get its neighbour, though its name could be a rotated one."""
    append(tmp_path / "server.log", entry(1, session="a") + entry(100, session="a"))
    append(tmp_path / "server2.log", entry(2, session="b") + entry(50, session="b"))
    tail = Following([tmp_path / "server.log"])
    tail.drain()
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    append(tmp_path / "server.log", entry(101, session="a"))
    tail.drain(after_s=3)

    assert read_names(tail) == {"server.log"}


def test_the_base_name_may_be_missing_at_the_first_look(tmp_path: Path) -> None:
    """A first look in the middle of a rotation, when only renamed files are there, still finds one log."""
    append(tmp_path / "server2.log", entries(1, 2))
    append(tmp_path / "server1.log", entries(3, 4))
    tail = Following([tmp_path])
    tail.look()
    append(tmp_path / "server.log", entries(5, 6))

    assert tail.drain() == entries(1, 6)
    assert len({chunk.chain for chunk in tail.chunks}) == 1
    tail.close()


def test_what_cannot_be_read_is_said_once_and_stops_nothing_else(tmp_path: Path) -> None:
    """A log without permission is said once, tried again, and read when it may be; others are read meanwhile."""

    class Locked(LocalFiles):
        locked = True

        def open(self, path: str) -> Handle:
            if self.locked and path.endswith("a.log"):
                raise PermissionError(13, "Permission denied")
            return super().open(path)

    append(tmp_path / "a.log", entry(1))
    append(tmp_path / "b.log", entry(2))
    files = Locked()
    tail = Following([tmp_path], files=files)
    first = tail.drain() + tail.drain(after_s=60)
    files.locked = False

    assert (first, tail.drain()) == (entry(2), entry(1))
    assert [(notice.kind, Path(notice.path).name) for notice in tail.notices] == [
        (NoticeKind.UNREADABLE, "a.log"),
        (NoticeKind.READABLE_AGAIN, "a.log"),
    ]
    assert "permission denied" in tail.notices[0].text
    tail.close()


def test_a_folder_that_cannot_be_listed_loses_nothing(tmp_path: Path) -> None:
    """When a folder may not be listed for a while, its open files are followed on and nothing ends."""

    class Locked(LocalFiles):
        locked = False

        def list(self, folder: str) -> list[Name]:
            if self.locked:
                raise PermissionError(13, "Permission denied")
            return super().list(folder)

    append(tmp_path / "a.log", entry(1))
    files = Locked()
    tail = Following([tmp_path], files=files)
    tail.drain()
    files.locked = True
    append(tmp_path / "a.log", entry(2))
    append(tmp_path / "b.log", entry(3, session="b"))
    during = tail.drain(after_s=6) + tail.drain(after_s=60)
    files.locked = False

    assert (during, tail.drain()) == (entry(2), entry(3, session="b"))
    assert tail.kinds() == [NoticeKind.UNREADABLE, NoticeKind.READABLE_AGAIN]
    tail.close()


def test_too_many_open_files_is_said_with_the_limit(tmp_path: Path) -> None:
    """When no descriptor is left, the message says which limit to raise."""

    class Full(LocalFiles):
        def open(self, path: str) -> Handle:
            raise OSError(24, "Too many open files")

    append(tmp_path / "a.log", entry(1))
    tail = Following([tmp_path], files=Full())
    tail.look()

    assert "ulimit -n" in tail.notices[0].text
    tail.close()


def test_a_disk_that_fails_stops_no_other_log(tmp_path: Path) -> None:
    """A file whose bytes cannot be read is said once; the other logs go on, and it does too when it can be read."""

    class Broken(LocalFiles):
        broken = True

        def open(self, path: str) -> Handle:
            handle = super().open(path)
            return _Failing(handle, self) if path.endswith("a.log") else handle

    class _Failing:
        def __init__(self, handle: Handle, files: Broken) -> None:
            self.stat, self.close, self._pread, self._files = handle.stat, handle.close, handle.pread, files

        def pread(self, count_bytes: int, offset_bytes: int) -> bytes:
            if self._files.broken:
                raise OSError(5, "Input/output error")
            return self._pread(count_bytes, offset_bytes)

    append(tmp_path / "a.log", entry(1))
    append(tmp_path / "b.log", entry(2))
    files = Broken()
    tail = Following([tmp_path], files=files)
    first = tail.drain() + tail.drain(after_s=5)
    files.broken = False
    second = tail.drain(after_s=1.1)

    assert (first, second) == (entry(2), entry(1))
    assert tail.kinds().count(NoticeKind.UNREADABLE) == 1
    tail.close()


def test_a_file_system_that_tells_no_time_is_listed_all_the_same(tmp_path: Path) -> None:
    """Where a folder's time stamp never moves, new files are found within seconds."""

    class Timeless(LocalFiles):
        pass

    append(tmp_path / "a.log", entry(1))
    tail = Following([tmp_path], files=Timeless())
    tail.drain()
    for _ in range(10):
        tail.look()
    stamp = tmp_path.stat().st_mtime_ns
    append(tmp_path / "b.log", entry(2))
    os.utime(tmp_path, ns=(stamp, stamp))

    assert tail.drain(after_s=5.1) == entry(2)
    tail.close()


def test_times_of_a_gap_are_known_from_the_log(tmp_path: Path) -> None:
    """Times in notices are those of entries, in Unix milliseconds."""
    log = tmp_path / "server.log"
    append(log, entry(1))
    tail = Following([log])
    tail.drain()
    saved = tail.follower.checkpoint(tail.chunks[0].generation, len(entry(1)), BEGAN_MS + 100)
    tail.close()
    log.unlink()
    append(log, entry(7))
    again = Following([log], [saved])
    again.drain()

    (gap,) = [notice for notice in again.notices if notice.kind is NoticeKind.GAP]
    assert (gap.before_ms, gap.after_ms) == (BEGAN_MS + 100, BEGAN_MS + 700)
    again.close()
