"""Faults that users of vector (v) and of the collector's filelog receiver (f) reported: none of them is ours."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from otel_bridge.sources import Checkpoint, NoticeKind
from otel_bridge.sources.files import LocalFiles
from otel_bridge.sources.holding import Caps
from tests.sources.following import Following, append, entries, entry, rotate


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be."""
    return tmp_path / "server.log"


def first_run(log: Path) -> list[Checkpoint]:
    """Follow the log to its end, once; the checkpoints."""
    tail = Following([log])
    tail.drain()
    saved = tail.commit_all()
    tail.close()
    return saved


@pytest.mark.parametrize("first", [b"banner\n", b"b" * 1_023 + b"\n", b"b" * 4_000 + b"\n"])
def test_v25079_v17240_f19765_f20851_equal_beginnings_are_two_logs(tmp_path: Path, first: bytes) -> None:
    """Two logs that begin alike, by a line or by kilobytes, are both read wholly, whenever the second appears."""
    one, two = tmp_path / "a.log", tmp_path / "b.log"
    append(one, first + entries(1, 2))
    tail = Following([tmp_path])
    tail.drain()
    append(two, first[:5])
    tail.drain(after_s=1)
    append(two, first[5:] + entries(3, 4))
    tail.drain(after_s=1)
    tail.drain(after_s=2.1)
    tail.close()

    read = {Path(chunk.path).name: b"" for chunk in tail.chunks}
    for chunk in tail.chunks:
        read[Path(chunk.path).name] += chunk.data
    assert read == {"a.log": first + entries(1, 2), "b.log": first + entries(3, 4)}


@pytest.mark.parametrize("first", [b"banner\n", b"b" * 1_023 + b"\n", b"b" * 4_000 + b"\n"])
def test_f46496_f10481_a_rotated_log_that_begins_alike_is_read_from_its_beginning(log: Path, first: bytes) -> None:
    """A new file with the beginning of the old one does not get the old one's offset."""
    append(log, first + entries(1, 2))
    tail = Following([log])
    tail.drain()
    rotate(log)
    append(log, first)
    tail.drain()
    append(log, entries(3, 4))
    for _ in range(3):
        tail.drain(after_s=1.1)
    tail.close()

    assert b"".join(chunk.data for chunk in tail.chunks) == first + entries(1, 2) + first + entries(3, 4)


def test_v5833_v643_an_inode_that_is_used_again_is_another_file(log: Path) -> None:
    """A log that is deleted and written anew under the same inode number is read from its beginning."""
    append(log, entries(1, 3))
    (saved,) = first_run(log)
    log.unlink()
    append(log, entries(4, 9))
    key = LocalFiles().stat(str(log)).key
    tail = Following([log], [Checkpoint.from_json({**saved.to_json(), "device": key.device, "inode": key.inode})])

    assert tail.drain() == entries(4, 9)
    tail.close()


def test_v23076_an_offset_beyond_the_end_is_not_sought(log: Path) -> None:
    """A checkpoint behind the end of a file that became shorter is not waited for."""
    append(log, entries(1, 9))
    saved = first_run(log)
    os.truncate(log, 0)
    append(log, entry(10))
    tail = Following([log], saved)

    assert tail.drain() == entry(10)
    tail.close()


def test_v26334_checkpoints_of_files_that_are_gone_expire(log: Path) -> None:
    """A checkpoint whose file is gone is given back for deletion at the first look."""
    append(log, entries(1, 3))
    (saved,) = first_run(log)
    log.unlink()
    tail = Following([log], [saved])
    tail.look()

    assert list(tail.follower.gone()) == [saved.generation]
    tail.close()


def test_v22954_what_was_rotated_during_a_restart_is_read(log: Path) -> None:
    """A rotation while nobody followed loses nothing that still lies there."""
    append(log, entries(1, 2))
    saved = first_run(log)
    append(log, entries(3, 4))
    rotate(log)
    append(log, entries(5, 6))
    tail = Following([log], saved)

    assert tail.drain() == entries(3, 6)
    tail.close()


def test_v20512_names_that_are_used_in_a_ring_lose_nothing(tmp_path: Path) -> None:
    """Files that are deleted and written anew in turn, under the same names, are read each time."""
    logs = [tmp_path / f"{name}.log" for name in "abc"]
    tail = Following([tmp_path])
    expected, got = b"", b""
    for turn in range(9):
        log = logs[turn % 3]
        log.unlink(missing_ok=True)
        append(log, entry(turn))
        expected += entry(turn)
        got += tail.drain(after_s=0.2)
    got += tail.drain(after_s=1.1)

    assert got == expected
    tail.close()


def test_v17305_after_many_rotations_it_still_reads(log: Path) -> None:
    """Following does not fall silent, however often the log is rotated."""
    tail = Following([log])
    got = b""
    for number in range(1, 201):
        append(log, entry(number))
        got += tail.drain(after_s=0.5)
        tail.commit_all()
        rotate(log)
    append(log, entry(201))

    assert got + tail.drain() == entries(1, 201)
    assert tail.losses() == []
    tail.close()


def test_v5089_f35137_f17846_looking_goes_on_while_nobody_reads(log: Path) -> None:
    """However long nobody reads, every file that a look saw is read when reading goes on."""
    tail = Following([log])
    for first in range(1, 100, 2):
        append(log, entries(first, first + 1))
        tail.look()
        rotate(log)

    assert tail.drain() == entries(1, 100)
    tail.close()


def test_v11742_v15067_v22273_deleted_files_do_not_fill_the_disk(log: Path) -> None:
    """A deleted file that is read and committed is closed, without a restart."""
    append(log, entry(1))
    tail = Following([log])
    tail.drain()
    log.unlink()
    append(log, entry(2))
    tail.drain()
    tail.drain(after_s=11)
    tail.commit_all()
    tail.look(after_s=1.1)
    open_files = [str(found.readlink()) for found in Path("/proc/self/fd").iterdir() if found.is_symlink()]

    assert not any("server.log (deleted)" in path for path in open_files)
    tail.close()


def test_v2992_half_lines_come_out_whole(log: Path) -> None:
    """Lines that are written in pieces come out as the same bytes, in order."""
    tail = Following([log])
    got = b""
    data = entries(1, 20, 50)
    for begin in range(0, len(data), 37):
        append(log, data[begin : begin + 37])
        got += tail.drain()

    assert got == data
    tail.close()


def test_v24377_a_rarely_written_log_is_seen_at_once(log: Path) -> None:
    """A log that was silent for hours is read in the first look after it grew."""
    append(log, entry(1))
    tail = Following([log])
    tail.drain()
    for _ in range(100):
        tail.look(after_s=60)
    append(log, entry(2))

    assert tail.look()
    assert [chunk.data for chunk in tail.read()] == [entry(2)]
    tail.close()


def test_f43693_copytruncate_with_a_repeating_beginning_is_followed(log: Path) -> None:
    """A log that begins with the same kilobytes after every cut is read on, and completely."""
    banner = b"#" * 1_500 + b"\n"
    append(log, banner + entries(1, 2))
    tail = Following([log])
    got = tail.drain()
    for first in (3, 5, 7):
        shutil.copyfile(log, log.with_name("server.log.1"))
        os.truncate(log, 0)
        append(log, banner + entries(first, first + 1))
        got += tail.drain(after_s=1)

    assert got == b"".join(banner + entries(first, first + 1) for first in (1, 3, 5, 7))
    assert tail.losses() == []
    tail.close()


def test_f40200_what_is_written_to_a_rotated_file_is_read(log: Path) -> None:
    """A writer that keeps a renamed file for a while loses nothing."""
    append(log, entry(1))
    with log.open("ab", 0) as writer:
        tail = Following([log])
        tail.drain()
        rotate(log)
        append(log, entry(2))
        tail.drain(after_s=5)
        writer.write(entry(3))
        assert tail.drain(after_s=5) == entry(3)
        writer.write(entry(4))
        assert tail.drain(after_s=30) == entry(4)
    tail.close()


def test_f47908_f46945_f45120_the_offset_moves_only_with_the_commit(log: Path) -> None:
    """What was given out and not committed is given out again after a restart."""
    append(log, entries(1, 2))
    saved = first_run(log)
    append(log, entries(3, 4))
    crashed = Following([log], saved)
    assert crashed.drain() == entries(3, 4)
    crashed.close()
    tail = Following([log], saved)

    assert tail.drain() == entries(3, 4)
    tail.close()


def test_f32170_f35042_no_timer_cuts_a_long_line(log: Path) -> None:
    """A line of many blocks that is written slowly is never ended before its newline."""
    tail = Following([log])
    line = b"x" * 700_000 + b"\n"
    got = b""
    for begin in range(0, len(line), 100_000):
        append(log, line[begin : begin + 100_000])
        got += tail.drain(after_s=60)

    assert got == line
    assert not any(chunk.ends_generation for chunk in tail.chunks)
    tail.close()


def test_f40523_compressing_a_rotated_file_duplicates_nothing(tmp_path: Path) -> None:
    """A rotated file that is packed and deleted is not read again, neither now nor after a restart."""
    log = tmp_path / "server.log"
    append(log, entries(1, 9, 200))
    tail = Following([tmp_path])
    tail.drain()
    log.rename(log.with_name("server.log.1"))
    append(log, entries(10, 11, 200))
    tail.drain()
    with gzip.open(log.with_name("server.log.1.gz"), "wb") as packed:
        packed.write(entries(1, 9, 200))
    log.with_name("server.log.1").unlink()
    assert tail.drain() == b""
    saved = tail.commit_all()
    tail.close()
    tail = Following([tmp_path], saved)

    assert tail.drain() == b""
    assert [notice for notice in tail.notices if notice.kind is NoticeKind.GAP and notice.lost_bytes] == []
    tail.close()


def test_a_file_that_is_not_kept_open_is_read_when_it_is_said_to_have_grown(tmp_path: Path) -> None:
    """Of more files than may be open at once, one that is written and deleted within a second is read between."""
    quiet, busy = tmp_path / "a.log", tmp_path / "b.log"
    append(quiet, entry(1))
    tail = Following([tmp_path], caps=Caps(open_files=1))
    tail.drain()
    append(busy, entry(2))
    tail.drain()
    tail.drain(after_s=1.1)
    for log, number in ((quiet, 3), (busy, 4)):
        append(log, entry(number))
        tail.follower.look({str(log)})
        tail.read()
        log.unlink()
    tail.drain(after_s=1.1)

    assert sorted(chunk.data for chunk in tail.chunks if chunk.data) == [entry(number) for number in (1, 2, 3, 4)]
    assert tail.losses() == []
    tail.close()
