"""Bytes of a file in, items with their place out."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.decoding import decode_line
from otel_bridge.entries.entry import Entry, Item, Malformed, StateChange
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.kinds import STRUCTURED_LINE
from otel_bridge.entries.reader import EntryReader
from tests.entries.lines import SID, T_MS, line, nested, read
from tests.recordings import RECORDINGS, Recording

LIMIT_BYTES = 300
UNSTRUCTURED = b'{"level":"info","message":"[ProxyManager] DAP event: output","output":"x\xe2\x80\xa8y"}\n'


def read_line_by_line(data: bytes, max_line_bytes: int) -> list[Item]:
    """The plain way: what the reader must give, however fast it is and however the data is cut."""
    items: list[Item] = []
    start_byte = 0
    for whole in split_at_newlines(data):
        content = whole.removesuffix(b"\n").lstrip(b"\0")
        item: Entry | StateChange | Flaw | None = None
        if len(content) > max_line_bytes:
            item = Flaw.TOO_LONG
        elif STRUCTURED_LINE.search(content):
            item = decode_line(content)
        if item is not None:
            items.append(Malformed(item, "server.log", start_byte) if isinstance(item, Flaw) else item)
        start_byte += len(whole)
    return items


def split_at_newlines(data: bytes) -> list[bytes]:
    """Lines with their newline, where nothing but a newline ends one."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in blocks that end at these places."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


one_line = st.sampled_from(
    [
        line(),
        line("debug:state", "2026-11-30T20:53:03.998Z", event="paused"),
        line("tool:error boom", text="\u2028 one line\x85"),
        line(f"[SM _updateSessionState {SID}] State change: running -> paused"),
        line("tool:call", None),
        line("[Server] x", request={"message": "tool:call"}),
        line(a="x" * LIMIT_BYTES),
        line(a="\0" * 20).replace(b"\\u0000", b"\0"),
        b'{"message":"tool:call","timestamp":1796071983998,"a":"\\udcff"}\r\n',
        b'{"message":"tool:call","timestamp":1796071983998,}\n',
        b'{"message":"tool:call","a":"\xff"}\n',
        b'[{"message":"tool:call"}]\n',
        nested(140),
        UNSTRUCTURED,
        b"\n",
        b"\0" * (2 * LIMIT_BYTES),
        b"\0\n",
        b"x" * LIMIT_BYTES + b"\n",
        b"x" * (LIMIT_BYTES + 1) + b"\n",
        b"y" * (3 * LIMIT_BYTES),
        b'{"message":"tool:',
        b"\r",
    ]
)


@given(
    st.lists(one_line | st.binary(max_size=40), max_size=20).map(b"".join),
    st.lists(st.integers(min_value=0, max_value=1 << 16), max_size=12),
)
def test_any_cut_gives_the_same_items(data: bytes, places: list[int]) -> None:
    """However a file is cut into blocks, the reader finds what a loop over its lines finds, at the same places."""

    reader = EntryReader("server.log", max_line_bytes=LIMIT_BYTES)
    items = [item for block in cut(data, places) for item in reader.feed(block)] + reader.flush()

    assert items == read_line_by_line(data, LIMIT_BYTES)
    assert reader.pending_start_byte == len(data)


@pytest.mark.parametrize("recorded", RECORDINGS, ids=lambda recorded: recorded.name)
@pytest.mark.parametrize("block_bytes", [977, 64 << 10, 1 << 24])
def test_real_logs(recorded: Recording, block_bytes: int) -> None:
    """In the real server's logs every line that is structured is an entry, with none malformed and none missed."""
    log = recorded.log
    items = read(log[start : start + block_bytes] for start in range(0, len(log), block_bytes))

    assert items == read_line_by_line(log, 1 << 20)
    assert not [item for item in items if isinstance(item, Malformed)]


def test_places_begin_where_reading_began() -> None:
    """Offsets are those of the file, wherever in it the reader began and however its blocks are cut."""
    reader = EntryReader("server.log", start_byte=500)
    untimed = line("tool:call", None)
    items = [*reader.feed(line() + UNSTRUCTURED + untimed + untimed[:9]), *reader.feed(untimed[9:] + b"{")]

    third = 500 + len(line()) + len(UNSTRUCTURED)
    assert items[1:] == [Malformed(Flaw.NO_TIME, "server.log", start) for start in (third, third + len(untimed))]
    assert reader.pending_start_byte == third + 2 * len(untimed)


def test_pending_line_is_the_unfinished_one() -> None:
    """The mark stays before an unfinished line, over the limit or not, until its newline comes."""
    reader = EntryReader("server.log", max_line_bytes=10)
    marks = []
    for block in (b"ab\nc", b"d", b"x" * 20, b"y" * 20, b"\n", b"\0\0", b"z\n"):
        reader.feed(block)
        marks.append(reader.pending_start_byte)

    assert marks == [3, 3, 3, 3, 46, 46, 50]


def test_line_over_the_limit_is_counted_once() -> None:
    """A line over the limit is one malformed item, at its first byte, even if other lines surround it in the block."""
    long = line(a="x" * 500)
    data = line() + long + line("tool:response")
    items = read([data], LIMIT_BYTES)

    assert items == [
        Entry("tool:call", "", T_MS, {"level": "info"}),
        Malformed(Flaw.TOO_LONG, "server.log", len(line())),
        Entry("tool:response", "", T_MS, {"level": "info"}),
    ]


def test_endless_line_takes_no_memory() -> None:
    """Of a line of 100 MB no more is kept than the limit."""
    reader = EntryReader("server.log", max_line_bytes=1 << 20)
    block = b"x" * (64 << 10)
    tracemalloc.start()
    for _ in range(1600):
        assert reader.feed(block) == []
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 2 << 20
    assert reader.feed(b"\n" + line()) == [
        Malformed(Flaw.TOO_LONG, "server.log", 0),
        Entry("tool:call", "", T_MS, {"level": "info"}),
    ]


def test_hole_before_a_line() -> None:
    """NULs before a line, however many, are neither its content nor part of its length."""
    hole = b"\0" * 5000
    for blocks in ([hole + line()], [hole, line()], [UNSTRUCTURED + hole + line()]):
        assert read(blocks, LIMIT_BYTES) == [Entry("tool:call", "", T_MS, {"level": "info"})]


def test_flush_takes_a_whole_line_without_newline() -> None:
    """At the end of a file a whole line counts without newline; half a line is malformed if it looks structured."""
    whole, half = line().rstrip(b"\n"), line()[:30]

    assert read([whole]) == [Entry("tool:call", "", T_MS, {"level": "info"})]
    assert read([half + b'"message":"tool:call"']) == [Malformed(Flaw.NOT_JSON, "server.log", 0)]
    assert read([UNSTRUCTURED[:30]]) == []
    assert read([]) == []


def test_reading_goes_on_after_a_flush() -> None:
    """After a flush the reader stands at the start of a line, at the same offset."""
    reader = EntryReader("server.log")
    reader.feed(b"half")
    reader.flush()

    assert reader.pending_start_byte == 4
    assert reader.feed(line("tool:call", None)) == [Malformed(Flaw.NO_TIME, "server.log", 4)]
