"""Going on where the last run stopped, through whatever happened meanwhile."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from otel_bridge.sources import Checkpoint, NoticeKind, Start
from otel_bridge.sources.files import FileKey, Handle, LocalFiles
from tests.sources.following import BEGAN_MS, Following, append, entries, entry, rotate


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be."""
    return tmp_path / "server.log"


def run(log: Path, checkpoints: Sequence[Checkpoint] = (), *, commit: bool = True) -> tuple[bytes, list[Checkpoint]]:
    """Follow the log once, from checkpoints to all that is there; the bytes and the new checkpoints."""
    tail = Following([log], checkpoints)
    data = tail.drain()
    saved = tail.commit_all() if commit else list(checkpoints)
    tail.close()
    return data, saved


def restarted(log: Path, checkpoints: Sequence[Checkpoint]) -> Following:
    """A follower that goes on from the checkpoints, and has read all there is."""
    tail = Following([log], checkpoints)
    tail.drain()
    return tail


def data_of(tail: Following) -> bytes:
    """All bytes that were given out."""
    data = b"".join(chunk.data for chunk in tail.chunks)
    tail.close()
    return data


def test_nothing_comes_twice(log: Path) -> None:
    """After a restart only what is new is read, and the chain and the generation are the same."""
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 4))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(3, 4)
    assert {(chunk.chain, chunk.generation) for chunk in tail.chunks} == {(saved[0].chain, saved[0].generation)}


def test_what_was_not_committed_comes_again(log: Path) -> None:
    """After a crash exactly the bytes behind the last checkpoint come again."""
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 4))
    run(log, saved, commit=False)

    assert run(log, saved)[0] == entries(3, 4)


@pytest.mark.parametrize("times", [1, 2])
def test_a_rotation_meanwhile_loses_nothing(log: Path, times: int) -> None:
    """A file that was renamed while nobody followed is read on under its new name, before its successors."""
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 4))
    for turn in range(times):
        rotate(log)
        append(log, entries(5 + 2 * turn, 6 + 2 * turn))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(3, 4 + 2 * times)
    assert len({chunk.chain for chunk in tail.chunks}) == 1
    assert tail.losses() == []


def test_a_file_that_was_rotated_out_is_named(log: Path) -> None:
    """What was rotated out of existence is reported with file, offset, least number of bytes and the times around."""
    append(log, entries(1, 2))
    tail = Following([log])
    tail.drain()
    (chunk,) = tail.chunks
    saved = tail.follower.checkpoint(chunk.generation, len(entry(1)), BEGAN_MS + 100)
    tail.close()
    for first in (3, 5, 7):
        rotate(log)
        append(log, entries(first, first + 1))
    tail = restarted(log, [saved])

    (gap,) = [notice for notice in tail.notices if notice.kind is NoticeKind.GAP]
    assert data_of(tail) == entries(3, 8)
    assert (gap.path, gap.offset_bytes, gap.lost_bytes, gap.at_least) == (str(log), len(entry(1)), len(entry(2)), True)
    assert (gap.before_ms, gap.after_ms) == (BEGAN_MS + 100, BEGAN_MS + 300)
    assert [saved.generation] == list(tail.follower.gone())


def test_an_ended_file_that_is_gone_is_no_loss(log: Path) -> None:
    """A checkpoint whose end was committed is dropped without a word when its file is gone."""
    append(log, entries(1, 2))
    tail = Following([log])
    tail.drain()
    rotate(log)
    append(log, entries(3, 3))
    tail.drain()
    tail.drain(after_s=11)
    saved = tail.commit_all()
    tail.close()
    log.with_name("server1.log").unlink()
    tail = restarted(log, saved)

    assert data_of(tail) == b""
    assert tail.losses() == []


def test_an_inode_that_was_used_again_is_another_file(log: Path) -> None:
    """A new file with the old one's device and inode, but other bytes, is read from its beginning; the gap is said."""
    append(log, entries(1, 2))
    _, (saved,) = run(log)
    log.unlink()
    append(log, entries(3, 5))
    key = LocalFiles().stat(str(log)).key
    recycled = Checkpoint.from_json({**saved.to_json(), "device": key.device, "inode": key.inode})
    tail = restarted(log, [recycled])

    assert data_of(tail) == entries(3, 5)
    assert tail.losses() == [("server.log", len(entries(1, 2)), 0)]


def test_an_empty_file_is_not_told_by_its_inode(log: Path) -> None:
    """The checkpoint of an empty file says nothing about a later file with its inode: that is read in its own place."""
    append(log, entries(1, 2))
    _, (saved,) = run(log)
    append(log, entries(3, 4))
    rotate(log)
    append(log, entries(5, 6))
    key = LocalFiles().stat(str(log)).key
    nothing = {"head_bytes": 0, "offset_bytes": 0, "size_bytes": 0, "order": saved.order - 1}
    empty = Checkpoint.from_json({**saved.to_json(), **nothing, "device": key.device, "inode": key.inode})
    tail = restarted(log, [empty, saved])

    assert data_of(tail) == entries(3, 6)
    assert not any(chunk.late for chunk in tail.chunks)


def test_a_file_that_lost_its_end_meanwhile_is_said(log: Path) -> None:
    """A file that is shorter than it was seen to be, as after a power cut, has lost that much."""
    append(log, entries(1, 4, 2_000))
    tail = Following([log])
    tail.drain()
    saved = tail.follower.checkpoint(tail.chunks[0].generation, len(entry(1, 2_000)))
    tail.close()
    log.write_bytes(entries(1, 2, 2_000))
    tail = restarted(log, [saved])

    assert data_of(tail) == entry(2, 2_000)
    assert [lost for _, _, lost in tail.losses()] == [len(entries(3, 4, 2_000))]


def test_an_offset_beyond_the_end_is_not_believed(log: Path) -> None:
    """A file that is shorter than its checkpoint's offset was truncated: it is read from the beginning."""
    append(log, entries(1, 5))
    _, saved = run(log)
    log.write_bytes(entries(6, 6))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(6, 6)
    assert NoticeKind.GAP in tail.kinds()


def test_a_copy_and_truncation_meanwhile_is_read_from_the_copy(log: Path) -> None:
    """What copytruncate moved while nobody followed is read on in the copy, then the log from its beginning."""
    append(log, entries(1, 2, 300))
    _, saved = run(log)
    append(log, entries(3, 4, 300))
    shutil.copyfile(log, log.with_name("server.log.1"))
    log.write_bytes(entries(5, 6, 300))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(3, 6, 300)
    assert tail.losses() == []


def test_a_rotated_file_that_was_packed_meanwhile_is_read_on(log: Path) -> None:
    """A file that was rotated and compressed while nobody followed is read on at the same place, unpacked."""
    append(log, entries(1, 2, 300))
    _, saved = run(log)
    append(log, entries(3, 4, 300))
    with gzip.open(log.with_name("server.log.1.gz"), "wb") as packed:
        packed.write(log.read_bytes())
    log.unlink()
    append(log, entries(5, 6, 300))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(3, 6, 300)
    assert tail.losses() == []


def test_a_whole_file_that_came_and_was_packed_meanwhile_is_read(log: Path) -> None:
    """A file that was begun, rotated and compressed while nobody followed is read from its beginning, in its place."""
    append(log, entries(1, 2, 300))
    tail = Following([log])
    tail.drain()
    saved = [tail.follower.checkpoint(tail.chunks[0].generation, len(entries(1, 2, 300)), BEGAN_MS + 200)]
    tail.close()
    log.rename(log.with_name("server.log.2"))
    with gzip.open(log.with_name("server.log.1.gz"), "wb") as packed:
        packed.write(entries(3, 4, 300))
    append(log, entries(5, 6, 300))

    assert data_of(restarted(log, saved)) == entries(3, 6, 300)


def test_a_packed_part_whose_bytes_were_read_is_not_read_again(log: Path) -> None:
    """A compressed copy of what was delivered long ago is left alone."""
    append(log, entries(1, 2, 300))
    with gzip.open(log.with_name("server.log.1.gz"), "wb") as packed:
        packed.write(entries(1, 2, 300))
    tail = Following([log])
    tail.drain()
    saved = [tail.follower.checkpoint(tail.chunks[0].generation, len(entries(1, 2, 300)), BEGAN_MS + 200)]
    tail.close()

    assert data_of(restarted(log, saved)) == b""


def test_a_device_with_another_number_is_no_other_file(log: Path) -> None:
    """After a boot a device may have another number: head and seam find the file."""
    append(log, entries(1, 2, 300))
    _, (saved,) = run(log)
    append(log, entries(3, 3))
    moved = Checkpoint.from_json({**saved.to_json(), "device": saved.device + 1, "inode": saved.inode + 1})
    tail = restarted(log, [moved])

    assert data_of(tail) == entry(3)
    assert tail.losses() == []


def test_held_files_of_a_killed_run_are_named(log: Path) -> None:
    """Files that only the killed run still held are one hole, known from `unsaved` though nothing of them was read."""
    tail = Following([log])
    for first in (1, 3, 5, 7):
        append(log, entries(first, first + 1))
        tail.look()
        rotate(log)
    tail.look()
    saved = list(tail.follower.unsaved())
    tail.close()
    append(log, entries(9, 9))
    tail = restarted(log, saved)

    assert data_of(tail) == entries(5, 9)
    assert tail.losses() == [("server2.log", 0, len(entries(1, 4)))]


def test_a_file_that_must_not_be_read_now_is_waited_for(log: Path) -> None:
    """A log that lost its permission while nobody followed is no loss: it is read on when it may be read again."""

    class Locked(LocalFiles):
        locked = True

        def open(self, path: str) -> Handle:
            if self.locked:
                raise PermissionError(13, "Permission denied")
            return super().open(path)

    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 3))
    files = Locked()
    tail = Following([log], saved, files=files)
    assert tail.drain() == b""
    files.locked = False

    assert tail.drain(after_s=1.1) == entry(3)
    assert tail.kinds() == [NoticeKind.UNREADABLE, NoticeKind.READABLE_AGAIN]
    tail.close()


def test_the_place_where_an_old_log_was_begun_is_kept(log: Path) -> None:
    """A log that was begun at its end is read on from there after a restart, not from its beginning."""
    append(log, entries(1, 2))
    tail = Following([log], start=Start.NOW)
    tail.drain()
    saved = list(tail.follower.unsaved())
    tail.close()
    append(log, entries(3, 3))

    assert data_of(restarted(log, saved)) == entry(3)


def test_a_restored_file_keeps_its_identity_though_its_log_is_not_looked_for(tmp_path: Path) -> None:
    """A file that was renamed to something that no pattern means is found again by its inode."""
    log = tmp_path / "server.log"
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 3))
    log.rename(tmp_path / "set-aside")
    tail = restarted(log, saved)

    assert data_of(tail) == entry(3)
    assert {chunk.path for chunk in tail.chunks} == {str(tmp_path / "set-aside")}
    assert saved[0].key == FileKey(*LocalFiles().stat(str(tmp_path / "set-aside")).key)


def test_a_log_that_is_not_asked_for_now_is_left_as_it_was(tmp_path: Path) -> None:
    """When other logs are named than in the last run, those of the last run are neither read nor forgotten."""
    before, now = tmp_path / "before" / "a.log", tmp_path / "now" / "b.log"
    for log in (before, now):
        log.parent.mkdir()
        append(log, entries(1, 2, session=log.name))
    _, saved = run(before)
    append(before, entries(3, 3))
    tail = Following([now])
    tail.follower.restore(saved, only_asked=True)

    assert tail.drain() == entries(1, 2, session="b.log")
    assert tail.drain(after_s=60) == b""
    assert (list(tail.follower.gone()), tail.notices) == ([], [])
    tail.close()


def test_a_log_that_is_asked_for_later_is_read_on_then(tmp_path: Path) -> None:
    """A log that the patterns come to mean only after the first look goes on at its checkpoint."""
    log, other = tmp_path / "one" / "a.log", tmp_path / "two" / "b.log"
    log.parent.mkdir()
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 3))
    patterns = [str(other)]
    tail = Following(lambda: patterns)
    tail.follower.restore(saved, only_asked=True)
    before = tail.drain()
    patterns.append(str(log))

    assert (before, tail.drain(after_s=2.1)) == (b"", entry(3))
    tail.close()


def test_a_log_that_only_a_server_led_to_is_read_on_without_it(tmp_path: Path) -> None:
    """A log that was found because a server held it open goes on after a restart, though that server is gone."""
    log = tmp_path / "server.log"
    append(log, entries(1, 2))
    _, saved = run(log)
    append(log, entries(3, 3))
    tail = Following([])
    tail.follower.restore(saved)
    first = tail.drain()
    tail.drain(after_s=60)
    append(log, entries(4, 4))
    rotate(log)
    append(log, entries(5, 5))

    assert (first, tail.drain()) == (entry(3), entries(4, 5))
    tail.close()
