"""Finished files: their order, and their bytes."""

from __future__ import annotations

import gzip
import os
import random
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.errors import SourceError
from otel_bridge.sources import order_files, read_blocks
from otel_bridge.sources.files import FileStat, LocalFiles
from otel_bridge.sources.packed import PackedHandle
from tests.sources.following import append, entries, entry


def names(paths: Sequence[Path | str]) -> list[list[str]]:
    """The logs that files are put together to, as names."""
    return [[Path(path).name for path in chain.files] for chain in order_files(map(str, paths))]


@pytest.mark.parametrize("seed", range(4))
def test_the_parts_of_a_rotation_are_one_log_oldest_first(tmp_path: Path, seed: int) -> None:
    """In whatever order the parts are given, they are one log, oldest first."""
    for name, first in (("server2.log", 1), ("server1.log", 3), ("server.log", 5)):
        append(tmp_path / name, entries(first, first + 1))
    paths = list(tmp_path.iterdir())
    random.Random(seed).shuffle(paths)
    (chain,) = order_files(map(str, paths))

    assert [Path(path).name for path in chain.files] == ["server2.log", "server1.log", "server.log"]
    assert chain.name == str(tmp_path / "server.log")


def test_numbered_and_packed_parts_are_parts(tmp_path: Path) -> None:
    """logrotate's names, packed or not, are parts of the log as well."""
    with gzip.open(tmp_path / "server.log.2.gz", "wb") as packed:
        packed.write(entries(1, 2))
    append(tmp_path / "server.log.1", entries(3, 4))
    append(tmp_path / "server.log", entries(5, 6))

    assert names([tmp_path]) == [["server.log.2.gz", "server.log.1", "server.log"]]


def test_a_packed_log_is_the_log(tmp_path: Path) -> None:
    """The newest file, packed by hand: the rotated ones are parts of it, whatever is packed."""
    append(tmp_path / "server1.log", entries(1, 2))
    with gzip.open(tmp_path / "server.log.gz", "wb") as packed:
        packed.write(entries(3, 4))

    assert names([tmp_path]) == [["server1.log", "server.log.gz"]]


def test_what_a_log_held_before_it_was_packed_is_a_part_of_it(tmp_path: Path) -> None:
    """Packed under its own name, and begun anew."""
    with gzip.open(tmp_path / "server.log.gz", "wb") as packed:
        packed.write(entries(1, 2))
    append(tmp_path / "server.log", entries(3, 4))

    assert names([tmp_path]) == [["server.log.gz", "server.log"]]


def test_a_packed_log_of_the_same_time_is_a_log_of_its_own(tmp_path: Path) -> None:
    """As of two machines, put into one folder."""
    with gzip.open(tmp_path / "server.log.gz", "wb") as packed:
        packed.write(entry(2, session="b") + entry(50, session="b"))
    append(tmp_path / "server.log", entry(5, session="a") + entry(100, session="a"))

    assert names([tmp_path]) == [["server.log.gz"], ["server.log"]]


def test_logs_of_the_same_time_are_logs_of_their_own(tmp_path: Path) -> None:
    """Two processes whose ids differ by a digit have two logs; the one that began first comes first."""
    append(tmp_path / "debug-mcp-server-123.log", entry(5, session="a") + entry(100, session="a"))
    append(tmp_path / "debug-mcp-server-1231.log", entry(2, session="b") + entry(50, session="b"))

    assert names([tmp_path]) == [["debug-mcp-server-1231.log"], ["debug-mcp-server-123.log"]]


def test_a_session_in_both_makes_one_log(tmp_path: Path) -> None:
    """Files whose times overlap are one log all the same when a session stands in both: a second writer did that."""
    append(tmp_path / "server1.log", entry(1) + entry(60))
    append(tmp_path / "server.log", entry(20) + entry(50))

    assert names([tmp_path]) == [["server1.log", "server.log"]]


def test_a_part_without_its_log_is_read_too(tmp_path: Path) -> None:
    """A rotated part that is given alone is a log of its own."""
    append(tmp_path / "server1.log", entry(1))

    assert names([tmp_path / "server1.log"]) == [["server1.log"]]


def test_parts_whose_log_is_missing_are_one_log(tmp_path: Path) -> None:
    """Rotated parts belong together also when the newest file was not given."""
    append(tmp_path / "server2.log", entries(1, 2))
    append(tmp_path / "server1.log", entries(3, 4))

    assert names([tmp_path]) == [["server2.log", "server1.log"]]


def test_a_file_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    """The same file under two names, or named twice, counts once."""
    append(tmp_path / "a.log", entry(1))
    (tmp_path / "b.log").symlink_to(tmp_path / "a.log")

    assert names([tmp_path / "a.log", tmp_path / "b.log", tmp_path / "a.log"]) == [["a.log"]]


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    """A missing path, a FIFO and an empty folder are errors that name the path and the next step."""
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "empty").mkdir()

    for path in (tmp_path / "none.log", tmp_path / "fifo.log", tmp_path / "empty"):
        with pytest.raises(SourceError, match=f"{path}.*; ") as caught:
            order_files([str(path)])
        assert "\n" not in str(caught.value)


def test_without_times_the_last_write_decides(tmp_path: Path) -> None:
    """Files without any time in them are ordered by when they were written."""
    for name, when in (("server.log", 300), ("server1.log", 200), ("server2.log", 100)):
        append(tmp_path / name, b"text\n")
        os.utime(tmp_path / name, (when, when))

    assert names([tmp_path]) == [["server2.log", "server1.log", "server.log"]]


def test_iso_and_integer_times_are_read_alike(tmp_path: Path) -> None:
    """Both forms of a time count, in both orders of keys, with and without a zone."""
    append(tmp_path / "server1.log", b'{"a":1,"timestamp":"2023-11-14T22:13:20.000Z"}\n')
    append(tmp_path / "server.log", b'{"timestamp": 1700000001000}\n{"timestamp":"2023-11-14T22:13:30"}\n')

    assert names([tmp_path]) == [["server1.log", "server.log"]]


@pytest.mark.parametrize("packed", [False, True])
def test_blocks_are_the_bytes_of_the_file(tmp_path: Path, packed: bool) -> None:
    """The blocks of a file, packed or not, whatever its name, are its bytes in order."""
    data = random.Random(1).randbytes(300_000) * 9
    (tmp_path / "x").write_bytes(gzip.compress(data[:1_000_000]) + gzip.compress(data[1_000_000:]) if packed else data)
    blocks = list(read_blocks(str(tmp_path / "x"), 1 << 20))

    assert b"".join(blocks) == data
    assert max(map(len, blocks)) <= 1 << 20


def test_padding_behind_packed_data_is_nothing(tmp_path: Path) -> None:
    """Zeros behind a packed file are padding."""
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"data\n") + bytes(1_000))

    assert b"".join(read_blocks(str(tmp_path / "x.gz"))) == b"data\n"


@pytest.mark.parametrize("damage", ["cut", "changed", "followed by something else"])
def test_a_damaged_packed_file_gives_what_it_can(tmp_path: Path, damage: str) -> None:
    """What can be unpacked before the damage is given out; then the error says how much that was."""
    whole = gzip.compress(entries(1, 2_000), mtime=0)
    middle = len(whole) // 2
    (tmp_path / "x.gz").write_bytes(
        {
            "cut": whole[:middle],
            "changed": whole[:middle] + bytes(20) + whole[middle + 20 :],
            "followed by something else": whole + b"something else",
        }[damage]
    )
    blocks: list[bytes] = []
    with pytest.raises(SourceError, match=r"damaged after \d+ unpacked bytes"):
        blocks.extend(read_blocks(str(tmp_path / "x.gz"), 4_096))
    got = b"".join(blocks)

    assert len(got) > 10_000
    assert got[:10_000] == entries(1, 2_000)[:10_000]


def test_a_damaged_packed_file_has_its_place(tmp_path: Path) -> None:
    """A packed file that is cut off is put in order by what can be read of it."""
    whole = gzip.compress(entries(1, 2_000))
    (tmp_path / "server.log.1.gz").write_bytes(whole[: len(whole) // 2])
    append(tmp_path / "server.log", entries(3_000, 3_001))

    assert names([tmp_path]) == [["server.log.1.gz", "server.log"]]


class _Bytes:
    """An open file of given bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stat(self) -> FileStat:
        return LocalFiles().stat("/")

    def pread(self, count_bytes: int, offset_bytes: int) -> bytes:
        return self._data[offset_bytes : offset_bytes + count_bytes]

    def close(self) -> None:
        pass


@given(
    st.binary(max_size=5_000).flatmap(
        lambda data: st.tuples(
            st.just(data), st.lists(st.tuples(st.integers(0, 6_000), st.integers(0, 6_000)), max_size=8)
        )
    )
)
def test_a_packed_file_reads_like_the_plain_one(case: tuple[bytes, list[tuple[int, int]]]) -> None:
    """Reading any stretch of a packed file, in any order, gives the bytes of the plain one; so does its size."""
    data, reads = case
    handle = PackedHandle(_Bytes(gzip.compress(data)))

    for count, offset in reads:
        assert handle.pread(count, offset) == data[offset : offset + count]
    assert handle.stat().size_bytes == len(data)


def test_a_packed_file_that_unpacks_to_very_much_stays_small_in_memory(tmp_path: Path) -> None:
    """A megabyte that unpacks to a gigabyte is read in blocks of the size that was asked for."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    with (tmp_path / "x.gz").open("wb") as packed:
        for _ in range(200):
            packed.write(packer.compress(block))
        packed.write(packer.flush())
    sizes = [len(data) for data in read_blocks(str(tmp_path / "x.gz"), 1 << 20)]

    assert (sum(sizes), max(sizes)) == (200 << 20, 1 << 20)
