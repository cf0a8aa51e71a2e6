"""Bytes of one log file in, entries with their place out.

Nine lines in ten are not structured, so lines are never looped over: one search finds the few that matter in a block,
and only these are cut out and decoded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from otel_bridge.entries.decoding import decode_line
from otel_bridge.entries.entry import Entry, Flaw, Item, Malformed, Placed, StateChange
from otel_bridge.entries.kinds import STRUCTURED_LINE

DEFAULT_MAX_LINE_BYTES = 1 << 20

_NULS = re.compile(rb"\0*+")


@dataclass(frozen=True, slots=True)
class ReaderStatistics:
    """What a reader has met so far; `lines` are those that ended in a newline or in a flush, structured or not."""

    read_bytes: int
    lines: int
    entries: int
    state_changes: int
    malformed: Mapping[Flaw, int]


class EntryReader:
    """Turns the blocks of one file into entries, in the order of the file; however it is cut, the items are the same.

    A line ends at a `\\n` byte and nowhere else (winston writes U+2028 raw). NUL bytes before a line, which a crashed
    machine or a writer without append mode leaves behind, belong to its place but not to its length or content.

    An unfinished line is kept until its newline comes, up to `max_line_bytes`; a longer one is let go of and counted
    once, whether it is structured or not, when its newline comes. Everything else that is malformed is counted only if
    it passed the bytes test; all other lines are no concern of ours.
    """

    def __init__(self, path: str, *, start_byte: int = 0, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        """Begins at `start_byte`, which must be the start of a line; `path` is only for messages."""
        self._path = path
        self._max_line_bytes = max_line_bytes
        self._start_byte = start_byte
        self._next_byte = start_byte
        self._pending_start_byte = start_byte
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._skipping = False
        self._lines = 0
        self._entries = 0
        self._state_changes = 0
        self._malformed: Counter[Flaw] = Counter()

    @property
    def pending_start_byte(self) -> int:
        """The offset up to which all lines are complete: that of the unfinished line's first byte."""
        return self._pending_start_byte

    def statistics(self) -> ReaderStatistics:
        """The counts so far, as a snapshot."""
        return ReaderStatistics(
            read_bytes=self._next_byte - self._start_byte,
            lines=self._lines,
            entries=self._entries,
            state_changes=self._state_changes,
            malformed=MappingProxyType(dict(self._malformed)),
        )

    def feed(self, block: bytes) -> list[Placed]:
        """Takes the file's next bytes; the items of all lines that end in them."""
        placed: list[Placed] = []
        position = 0
        if self._next_byte > self._pending_start_byte:
            position = block.find(b"\n") + 1
            if position == 0:
                self._keep(block)
                self._next_byte += len(block)
                return placed
            self._keep(block[: position - 1])
            self._finish_line(self._next_byte + position, placed)
        complete = block.rfind(b"\n") + 1
        self._lines += block.count(b"\n", position, complete)
        self._read_lines(block, position, complete, placed)
        position = max(position, complete)
        self._pending_start_byte = self._next_byte + position
        self._keep(block[position:])
        self._next_byte += len(block)
        return placed

    def flush(self) -> list[Placed]:
        """Ends the unfinished line where the file ends: it counts if it is whole, else as malformed."""
        placed: list[Placed] = []
        if self._next_byte > self._pending_start_byte:
            self._finish_line(self._next_byte, placed)
        return placed

    def _keep(self, part: bytes) -> None:
        """Holds a part of the unfinished line, or nothing at all once it is over the limit."""
        if self._skipping:
            return
        if not self._pending:
            part = part.lstrip(b"\0")
        if part:
            self._pending.append(part)
            self._pending_bytes += len(part)
        if self._pending_bytes > self._max_line_bytes:
            self._pending.clear()
            self._skipping = True

    def _finish_line(self, end_byte: int, placed: list[Placed]) -> None:
        start_byte = self._pending_start_byte
        if self._skipping:
            self._place(Flaw.TOO_LONG, start_byte, end_byte, placed)
        else:
            line = b"".join(self._pending)
            if STRUCTURED_LINE.search(line):
                self._place(decode_line(line), start_byte, end_byte, placed)
        self._lines += 1
        self._pending.clear()
        self._pending_bytes = 0
        self._skipping = False
        self._pending_start_byte = end_byte

    def _read_lines(self, block: bytes, position: int, complete: int, placed: list[Placed]) -> None:
        """Reads the whole lines between two positions of a block, first cutting out those over the limit.

        Looking back from the limit for a newline clears as many lines at once as fit below it.
        """
        while position < complete:
            end = block.rfind(b"\n", position, position + self._max_line_bytes + 1) + 1
            if end == 0:
                first = _NULS.match(block, position).end()  # type: ignore[union-attr]  # matches the empty string too
                end = block.find(b"\n", first) + 1
                if end - 1 - first > self._max_line_bytes:
                    self._place(Flaw.TOO_LONG, self._next_byte + position, self._next_byte + end, placed)
                    position = end
                    continue
            self._search(block, position, end, placed)
            position = end

    def _search(self, block: bytes, position: int, end: int, placed: list[Placed]) -> None:
        offset = self._next_byte
        for found in STRUCTURED_LINE.finditer(block, position, end):
            start = found.start()
            if start < position:
                continue  # the line was read already
            line_start = block.rfind(b"\n", position, start) + 1 or position
            position = block.find(b"\n", start) + 1
            item = decode_line(block[line_start : position - 1].lstrip(b"\0"))
            self._place(item, offset + line_start, offset + position, placed)

    def _place(
        self, item: Entry | StateChange | Flaw | None, start_byte: int, end_byte: int, placed: list[Placed]
    ) -> None:
        if item is None:
            return
        kept: Item
        if isinstance(item, Entry):
            self._entries += 1
            kept = item
        elif isinstance(item, StateChange):
            self._state_changes += 1
            kept = item
        else:
            self._malformed[item] += 1
            kept = Malformed(item, self._path, start_byte)
        placed.append(Placed(kept, start_byte, end_byte))
