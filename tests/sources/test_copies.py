"""Truncation, and copies that look like logs: what `copytruncate`, backups and editors do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_bridge.sources import Follower, NoticeKind, Start
from tests.sources.following import Following, append, entries, entry


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be."""
    return tmp_path / "server.log"


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Following]:
    """A follower of the folder."""
    following = Following([tmp_path])
    yield following
    following.close()


def test_what_was_not_read_before_the_cut_is_read_from_the_copy(tail: Following, log: Path) -> None:
    """After copytruncate the rest comes from the copy, then what the log holds now; nothing twice."""
    append(log, entries(1, 10, 200))
    tail.look()
    tail.read(1_100)
    before = len(tail.chunks[0].data)
    append(log, entries(11, 20, 200))
    shutil.copyfile(log, log.with_name("server.log.1"))
    os.truncate(log, 0)
    append(log, entries(21, 22, 200))

    assert tail.drain() == entries(1, 22, 200)[before:]
    assert tail.losses() == []
    assert NoticeKind.COPIED in tail.kinds()


def test_the_copy_is_not_read_while_it_is_one(tail: Following, log: Path) -> None:
    """A copy beside the log, whatever its name, is never read from its beginning."""
    append(log, entries(1, 10, 200))
    tail.drain()
    shutil.copyfile(log, log.with_name("server.log.1"))
    shutil.copyfile(log, log.with_name("backup.log"))
    append(log, entries(11, 11, 200))

    assert tail.drain() == entry(11, 200)
    assert tail.drain(after_s=5) == b""


def test_a_copy_that_is_being_written_is_not_mistaken(tail: Following, log: Path) -> None:
    """A copy that is seen while it is short is no log of its own, nor when it has grown."""
    append(log, entries(1, 10, 200))
    tail.drain()
    copy = log.with_name("server.log.1")
    for end in (0, 10, 500, 1_500, len(entries(1, 10, 200))):
        copy.write_bytes(entries(1, 10, 200)[:end])
        assert tail.drain() == b""
    os.truncate(log, 0)
    append(log, entries(11, 12, 200))

    assert tail.drain() == entries(11, 12, 200)


def test_lines_between_the_copy_and_the_cut_are_counted(tail: Following, log: Path) -> None:
    """What was written after the copy and seen before the cut is lost to everybody, and counted exactly."""
    append(log, entries(1, 4, 300))
    tail.look()
    shutil.copyfile(log, log.with_name("server.log.1"))
    append(log, entries(5, 6, 300))
    tail.look()
    os.truncate(log, 0)

    assert tail.drain() == entries(1, 4, 300)
    assert [lost for _, _, lost in tail.losses()] == [len(entries(5, 6, 300))]


def test_a_truncation_without_a_copy_is_a_loss_with_a_number(tail: Following, log: Path) -> None:
    """A log that is cut before it was read loses its rest: file, offset and bytes are said."""
    append(log, entries(1, 2))
    tail.drain()
    append(log, entries(3, 5))
    tail.look()
    os.truncate(log, 0)
    append(log, entries(6, 6))

    assert tail.drain() == entry(6)
    assert tail.losses() == [("server.log", len(entries(1, 2)), len(entries(3, 5)))]


def test_a_truncation_of_what_was_read_loses_nothing(tail: Following, log: Path) -> None:
    """Cutting a log that was read to its end is no loss; the old generation ends, a new one begins at 0."""
    append(log, entries(1, 2))
    tail.drain()
    os.truncate(log, 0)
    append(log, entry(3))

    assert tail.drain() == entry(3)
    assert tail.losses() == []
    assert [chunk.start_byte for chunk in tail.chunks if chunk.data] == [0, 0]
    assert [chunk.ends_generation for chunk in tail.chunks] == [False, True, False]


@pytest.mark.parametrize("size", [3, 2, 5], ids=["same size", "smaller", "larger"])
def test_a_rewritten_file_is_noticed_whatever_its_size(tail: Following, log: Path, size: int) -> None:
    """A log that was cut and has grown again between two looks is read from its beginning."""
    append(log, entries(1, 3, 200))
    tail.drain()
    log.write_bytes(entries(4, 3 + size, 200))

    assert tail.drain() == entries(4, 3 + size, 200)


def test_leading_zeros_are_nobodys(tail: Following, log: Path) -> None:
    """A writer that does not append leaves a hole of zeros after a cut: it is skipped, the rest keeps its place."""
    with log.open("wb", 0) as writer:
        writer.write(entries(1, 3))
        tail.drain()
        shutil.copyfile(log, log.with_name("server.log.1"))
        os.truncate(log, 0)
        writer.write(entry(4))
    tail.drain()

    assert (tail.chunks[-1].data, tail.chunks[-1].start_byte) == (entry(4), len(entries(1, 3)))
    assert tail.losses() == []


def test_a_copy_that_lost_its_name_is_still_read(tail: Following, log: Path) -> None:
    """A copy that was seen and is rotated out before the cut is noticed is open still."""
    append(log, entries(1, 4, 300))
    tail.look()
    copy = log.with_name("server.log.1")
    shutil.copyfile(log, copy)
    tail.look()
    os.truncate(log, 0)
    copy.unlink()
    append(log, entry(5))

    assert tail.drain() == entries(1, 4, 300) + entry(5)
    assert tail.losses() == []


def test_two_cuts_between_two_looks_lose_nothing_that_was_copied(tail: Following, log: Path) -> None:
    """Copies of which the follower never saw the original are read whole, in their place."""
    append(log, entries(1, 4, 300))
    tail.look()
    one, two = log.with_name("server.log.1"), log.with_name("server.log.2")
    shutil.copyfile(log, one)
    os.truncate(log, 0)
    append(log, entries(5, 8, 300))
    one.rename(two)
    shutil.copyfile(log, one)
    os.truncate(log, 0)
    append(log, entries(9, 9, 300))

    assert tail.drain() == entries(1, 9, 300)
    assert tail.losses() == []


def test_an_editor_that_replaces_the_file_makes_no_duplicates(tail: Following, log: Path) -> None:
    """A file that was replaced by its own copy (`sed -i`) is not read again; what is appended to it is."""
    append(log, entries(1, 4, 300))
    tail.drain()
    shutil.copyfile(log, log.with_name("tmp"))
    log.with_name("tmp").rename(log)

    assert tail.drain() == b""
    assert tail.losses() == []


def test_lines_that_were_copied_and_cut_between_two_looks_are_read_from_the_copy(tmp_path: Path) -> None:
    """Nobody saw them in the base, which looks as it did before: empty."""
    log = tmp_path / "server.log"
    log.touch()
    clock = [1_000.0]
    follower = Follower([str(log)], start=Start.BEGINNING, monotonic_s=lambda: clock[0])
    follower.look()
    clock[0] += 5
    (tmp_path / "server.log.1").write_bytes(b"line\n")

    follower.look()
    assert [(chunk.path, chunk.data) for chunk in follower.read()] == [(f"{log}.1", b"line\n")]
    follower.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a" * 3_000 + b"\n", b"b" * 1_100 + b"a" * 1_899 + b"\n"),
        (b"a" * 1_100 + b"b" * 1_900 + b"\n", b"a" * 1_100 + b"c" * 1_900 + b"\n"),
    ],
    ids=["other head, same seam", "same head, other seam"],
)
def test_bytes_of_two_contents_are_never_mixed(tail: Following, log: Path, before: bytes, after: bytes) -> None:
    """A read that comes after the file was rewritten, and before a look, gives nothing; then all of the new comes."""
    append(log, before)
    tail.look()
    (first,) = tail.read(2_000)
    log.write_bytes(after)

    assert tail.read() == []
    assert first.data == before[: len(first.data)]
    assert tail.drain() == after
    assert [lost for _, _, lost in tail.losses()] == [len(before) - len(first.data)]


def test_a_checkpoint_made_right_after_a_cut_leads_to_the_copy(tail: Following, log: Path, tmp_path: Path) -> None:
    """A commit between a cut and the next look is found again after a crash: its place is in the copy."""
    append(log, entries(1, 10, 500))
    tail.drain()
    shutil.copyfile(log, log.with_name("server.log.1"))
    log.write_bytes(entries(11, 30, 500))
    saved = tail.follower.checkpoint(tail.chunks[0].generation, len(entries(1, 4, 500)))
    again = Following([tmp_path], [saved])

    assert again.drain() == entries(5, 30, 500)
    assert again.losses() == []
    again.close()


def test_a_file_that_only_became_shorter_is_read_on(tail: Following, log: Path) -> None:
    """When only unread bytes at the end are gone, those are lost, and what is left and what follows comes once."""
    append(log, entries(1, 30, 500))
    tail.look()
    tail.read(len(entries(1, 10, 500)))
    os.truncate(log, len(entries(1, 20, 500)))
    tail.drain()
    append(log, entries(31, 31, 500))
    tail.drain()

    data = b"".join(chunk.data for chunk in tail.chunks)
    assert data == entries(1, 20, 500) + entries(31, 31, 500)
    assert [lost for _, _, lost in tail.losses()] == [len(entries(21, 30, 500))]


def test_a_copy_goes_before_what_was_deleted_meanwhile(tail: Following, log: Path) -> None:
    """A copy that nobody saw being made is put by its times before a newer file that has no name any more."""
    append(log, entries(1, 4, 300))
    tail.look()
    one, two = log.with_name("server.log.1"), log.with_name("server.log.2")
    shutil.copyfile(log, two)
    log.write_bytes(entries(5, 8, 300))
    shutil.copyfile(log, one)
    log.write_bytes(entries(9, 12, 300))
    log.unlink()
    append(log, entries(13, 16, 300))

    assert tail.drain() == entries(1, 16, 300)
    assert not any(chunk.late for chunk in tail.chunks)
