"""Following one log while it is written, rotated and deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_bridge.sources import Caps, NoticeKind
from tests.sources.following import Following, append, entries, entry, rotate
from tests.waiting import wait_until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be."""
    return tmp_path / "server.log"


@pytest.fixture
def tail(log: Path) -> Iterator[Following]:
    """A follower of the one log."""
    following = Following([log])
    yield following
    following.close()


def test_what_is_written_comes_out_with_its_place(tail: Following, log: Path) -> None:
    """Bytes are given out once, in order, with their offset, as they are written."""
    append(log, b"one\n")
    first = tail.drain()
    append(log, b"tw")
    append(log, b"o\nthree")
    second = tail.drain()

    assert (first, second) == (b"one\n", b"two\nthree")
    assert [chunk.start_byte for chunk in tail.chunks] == [0, 4]
    assert {str(log)} == {chunk.path for chunk in tail.chunks}
    assert not any(chunk.late or chunk.ends_generation for chunk in tail.chunks)


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """A missing file, in a missing folder, is found when it appears."""
    log = tmp_path / "deep" / "logs" / "server.log"
    tail = Following([log])
    before = tail.drain()
    log.parent.mkdir(parents=True)
    append(log, b"here\n")

    assert (before, tail.drain(after_s=2.1)) == (b"", b"here\n")
    tail.close()


def test_the_old_file_is_read_to_its_end_before_the_new_one(tail: Following, log: Path) -> None:
    """After a rotation the renamed file's rest comes first, then the new file, in one chain."""
    append(log, entries(1, 3))
    tail.look()
    append(log, entries(4, 5))
    rotate(log)
    append(log, entries(6, 7))

    assert entries(1, 7) == tail.drain()
    assert tail.kinds() == [NoticeKind.ROTATED]
    assert len({chunk.chain for chunk in tail.chunks}) == 1
    assert len({chunk.generation for chunk in tail.chunks}) == 2


def test_several_rotations_between_two_looks_lose_nothing(tail: Following, log: Path) -> None:
    """Files that came and were renamed since the last look are read, oldest first."""
    append(log, entries(1, 2))
    tail.look()
    for first in (3, 5):
        rotate(log)
        append(log, entries(first, first + 1))

    assert entries(1, 6) == tail.drain()


def test_while_nobody_reads_files_stay_open(tail: Following, log: Path) -> None:
    """A full queue stops reading, not looking: files that rotation deletes meanwhile are kept and read later."""
    for first in range(1, 30, 3):
        append(log, entries(first, first + 2))
        tail.look()
        rotate(log)
    tail.look()

    assert tail.follower.statistics().held_files == 8
    assert entries(1, 30) == tail.drain()
    assert tail.losses() == []


def test_a_missing_name_is_no_end(tail: Following, log: Path) -> None:
    """Between two renames the log has no name for a moment; what is written then still comes, and then the new file."""
    append(log, entries(1, 1))
    tail.drain()
    log.rename(log.with_name("server1.log"))
    between = tail.drain()
    append(log.with_name("server1.log"), entries(2, 2))
    append(log, entries(3, 3))

    assert (b"", entries(2, 3)) == (between, tail.drain())
    assert not any(chunk.late for chunk in tail.chunks)


def test_half_a_line_is_never_ended_by_a_timer(tail: Following, log: Path) -> None:
    """A half line stays half for as long as its file is the newest, however long that is."""
    append(log, b'{"half":')
    tail.drain()
    for _ in range(5):
        tail.drain(after_s=3_600)
    append(log, b"1}\n")

    assert tail.drain() == b"1}\n"
    assert not any(chunk.ends_generation for chunk in tail.chunks)


def test_a_rotated_file_ends_when_it_is_quiet(tail: Following, log: Path) -> None:
    """The end of a renamed file is given out once, ten seconds after it grew last, and not before."""
    append(log, b"whole\nhalf")
    tail.drain()
    rotate(log)
    append(log, b"new\n")
    tail.drain(after_s=9)
    before = [chunk.ends_generation for chunk in tail.chunks]
    tail.drain(after_s=2)
    tail.drain(after_s=60)

    assert not any(before)
    assert [(chunk.start_byte, chunk.data, True) for chunk in tail.chunks if chunk.ends_generation] == [(10, b"", True)]


def test_a_second_writer_makes_late_lines(tail: Following, log: Path) -> None:
    """What is appended to a renamed file after the new one was begun comes next, marked late, and is said once."""
    append(log, entries(1, 2))
    with log.open("ab", 0) as second:
        tail.drain()
        rotate(log)
        append(log, entries(3, 4))
        tail.drain()
        second.write(entries(5, 5))
        assert entries(5, 5) == tail.drain()
        second.write(entries(6, 6))
        assert entries(6, 6) == tail.drain(after_s=30)

    assert [chunk.late for chunk in tail.chunks if chunk.data] == [False, False, True, True]
    assert tail.kinds().count(NoticeKind.LATE_LINES) == 1


def test_a_file_that_grows_after_its_end_is_read_on(tail: Following, log: Path) -> None:
    """A renamed file whose end was given out and that grows again gives its bytes, and another end."""
    append(log, entries(1, 1))
    with log.open("ab", 0) as second:
        tail.drain()
        rotate(log)
        append(log, entries(2, 2))
        tail.drain(after_s=11)
        tail.commit_all()
        second.write(entries(3, 3))
        assert entries(3, 3) == tail.drain()
        tail.drain(after_s=11)

    assert sum(chunk.ends_generation for chunk in tail.chunks) == 2


def test_a_deleted_log_is_read_while_its_writer_has_it(log: Path) -> None:
    """A deleted log with no successor is followed for as long as a process writes to it, then it ends."""
    writers = {"in_use": True}
    tail = Following([log], in_use=lambda _: writers["in_use"])
    with log.open("ab", 0) as writer:
        writer.write(entries(1, 1))
        tail.drain()
        log.unlink()
        tail.drain(after_s=3_600)
        writer.write(entries(2, 2))
        assert entries(2, 2) == tail.drain()
    writers["in_use"] = False
    tail.drain(after_s=11)

    assert tail.chunks[-1].ends_generation
    assert tail.kinds().count(NoticeKind.REMOVED) == 1
    tail.close()


def test_a_deleted_and_delivered_file_is_let_go(tail: Following, log: Path) -> None:
    """Once its end is committed, a file without a name is closed, and its checkpoint may be deleted."""
    append(log, entries(1, 1))
    tail.drain()
    log.unlink()
    append(log, entries(2, 2))
    tail.drain()
    held = tail.follower.statistics().held_files
    tail.drain(after_s=11)
    ended = next(chunk.generation for chunk in tail.chunks if chunk.ends_generation)
    tail.commit_all()
    tail.look(after_s=2)

    assert (held, tail.follower.statistics().held_files) == (1, 0)
    assert [ended] == list(tail.follower.gone())


def test_the_folder_can_be_deleted_and_made_again(tail: Following, log: Path) -> None:
    """A log whose folder goes and comes back is the same chain, with a new generation."""
    append(log, entries(1, 1))
    tail.drain()
    log.unlink()
    log.parent.rmdir()
    tail.drain(after_s=3)
    log.parent.mkdir()
    append(log, entries(2, 2))

    assert entries(2, 2) == tail.drain(after_s=3)
    assert len({chunk.chain for chunk in tail.chunks}) == 1


def test_the_cap_gives_up_the_oldest_and_counts_it(log: Path) -> None:
    """When more files are held than the cap allows, the oldest unread bytes are given up, with their number."""
    tail = Following([log], caps=Caps(held_files=2))
    for first in range(1, 13, 2):
        append(log, entries(first, first + 1))
        tail.look()
        rotate(log)
    append(log, entries(13, 14))
    tail.look()

    assert entries(5, 14) == tail.drain()
    assert [("server2.log", 0, len(entries(1, 2))), ("server2.log", 0, len(entries(3, 4)))] == tail.losses()
    tail.close()


def test_the_cap_on_bytes_gives_up_too(log: Path) -> None:
    """Held bytes are capped as well as held files."""
    tail = Following([log], caps=Caps(held_bytes=1_000))
    append(log, entry(1, 2_000))
    tail.look()
    log.unlink()
    append(log, entry(2))
    tail.look()

    assert entry(2) == tail.drain()
    assert [("server.log", 0, len(entry(1, 2_000)))] == tail.losses()
    tail.close()


def test_what_is_read_is_closed_before_anything_is_given_up(log: Path) -> None:
    """The cap closes files that are read already first, and loses nothing while there are any."""
    tail = Following([log], caps=Caps(held_files=1))
    got = b""
    for first in range(1, 21, 2):
        append(log, entries(first, first + 1))
        got += tail.drain()
        rotate(log)
    got += tail.drain()

    assert entries(1, 20) == got
    assert tail.losses() == []
    tail.close()


def test_the_cap_prefers_what_is_read_though_it_is_younger(tmp_path: Path) -> None:
    """Of two held files the one that is read is closed, though the other is older."""
    large, small = tmp_path / "a.log", tmp_path / "b.log"
    append(large, entry(1, 900_000))
    tail = Following([tmp_path], caps=Caps(held_files=1))
    tail.look()
    append(small, entry(2))
    tail.look()
    tail.read(400_000)
    assert {Path(chunk.path).name for chunk in tail.chunks} == {"a.log", "b.log"}
    for log in (large, small):
        log.unlink()
    tail.drain()

    assert tail.losses() == []
    assert sum(len(chunk.data) for chunk in tail.chunks) == len(entry(1, 900_000)) + len(entry(2))
    tail.close()


def test_a_deleted_log_is_kept_for_minutes_where_its_writers_are_unknown(log: Path) -> None:
    """Where nobody can say who writes, a deleted log without a successor is given ten minutes, not ten seconds."""
    tail = Following([log], in_use=lambda _: None)
    with log.open("ab", 0) as writer:
        writer.write(entry(1))
        tail.drain()
        log.unlink()
        tail.drain(after_s=500)
        writer.write(entry(2))
        assert tail.drain() == entry(2)
        tail.drain(after_s=590)
        before = [chunk.ends_generation for chunk in tail.chunks]
        tail.drain(after_s=20)

    assert not any(before)
    assert tail.chunks[-1].ends_generation
    tail.close()


def test_logs_are_read_in_turn(tmp_path: Path) -> None:
    """Of several logs each gets its turn: a large one does not keep the others waiting."""
    append(tmp_path / "large.log", b"x" * 3_000_000 + b"\n")
    append(tmp_path / "small.log", b"small\n")
    tail = Following([tmp_path])
    tail.look()
    chunks = tail.read(600_000)

    assert {"large.log", "small.log"} == {Path(chunk.path).name for chunk in chunks}
    assert sum(len(chunk.data) for chunk in chunks) < 900_000
    tail.close()


def test_only_a_look_makes_bytes_readable(tail: Following, log: Path) -> None:
    """Reading without a look gives nothing: what comes first is known only once it was looked for."""
    append(log, b"one\n")

    assert tail.read() == []
    assert tail.look()
    assert [chunk.data for chunk in tail.read()] == [b"one\n"]
    assert not tail.look()


def test_more_files_than_may_be_open_are_followed(tmp_path: Path) -> None:
    """Quiet files are closed and opened again when they grow; none is lost or read twice."""
    logs = [tmp_path / f"{letter}.log" for letter in "abcdefgh"]
    for log in logs:
        append(log, entry(1))
    before = len(list(Path("/proc/self/fd").iterdir()))
    tail = Following([tmp_path], caps=Caps(open_files=2))
    first = tail.drain()
    for log in logs:
        append(log, entry(2))
    second = b""
    for _ in range(3):
        second += tail.drain(after_s=1.1)

    assert (entry(1) * 8, entry(2) * 8) == (first, second)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 4
    tail.close()


@pytest.mark.parametrize("beside", ["nothing", "a rename", "a second"])
def test_a_quiet_file_that_is_said_to_have_changed_waits_for_no_turn(tmp_path: Path, beside: str) -> None:
    """Of hundreds of quiet files some are asked in each look; one that grew is read at once, whatever else happens."""
    logs = [tmp_path / f"quiet-{number}x.log" for number in range(300)]
    for log in logs:
        append(log, entry(1))
    tail = Following([tmp_path], caps=Caps(open_files=2))
    while len(tail.chunks) < len(logs):
        tail.drain(after_s=1.1)
    for number, log in enumerate(logs[::30]):
        if beside == "a rename":
            logs[number * 30 + 1].rename(tmp_path / f"quiet-{number}y.log")
        append(log, entry(2))
        tail.clock.now_s += 1.1 if beside == "a second" else 0.05

        assert tail.follower.look([str(log)])
        assert [chunk.data for chunk in tail.read()] == [entry(2)]
    tail.close()


def test_a_closed_quiet_file_that_is_replaced_is_told_from_its_successor(tmp_path: Path) -> None:
    """A file that took over the name, or the inode number, of a closed one is read from its beginning."""
    quiet, busy = tmp_path / "a.log", tmp_path / "b.log"
    append(quiet, entry(1, 2_000))
    append(busy, entry(1))
    tail = Following([tmp_path], caps=Caps(open_files=0))
    tail.drain()
    quiet.unlink()
    append(quiet, entry(2, 2_000))

    assert entry(2, 2_000) == tail.drain(after_s=1.1) + tail.drain(after_s=1.1)
    tail.close()


@pytest.mark.parametrize("rotations", [1, 2, 3, 4, 6])
def test_a_rotation_all_the_way_round_between_two_looks_is_said(log: Path, tail: Following, rotations: int) -> None:
    """Where the oldest file that is there did not take the last name of the last known one, files are missing."""
    append(log, entries(1, 5))
    tail.drain()
    for number in range(rotations):
        stamp_ns = log.stat().st_ctime_ns
        wait_until(lambda stamp_ns=stamp_ns: time.time_ns() - stamp_ns > 30_000_000, "time stamps tell it")  # type: ignore[misc]
        rotate(log)
        append(log, entries(10 * number + 11, 10 * number + 15))
    tail.drain()
    tail.drain(after_s=1.1)

    said = [notice for notice in tail.notices if notice.kind is NoticeKind.OVERTAKEN]
    assert len(said) == (rotations > 3)  # the third replaces it: then all that came after it is there
    for notice in said:
        assert notice.is_loss
        assert f"{log} was rotated all the way round between two looks" in notice.text
        assert f"between byte {len(entries(1, 5))} of the file before and {log.with_name('server2.log')}" in notice.text


def test_a_log_that_is_deleted_and_begun_anew_was_not_rotated(log: Path, tail: Following) -> None:
    """Nothing is missing where only the log itself is new."""
    append(log, entries(1, 5))
    tail.drain()
    log.unlink()
    append(log, entries(6, 9))
    tail.drain()
    tail.drain(after_s=1.1)

    assert NoticeKind.OVERTAKEN not in tail.kinds()
