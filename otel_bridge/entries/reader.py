"""Bytes of one log file in, entries out.

Nine lines in ten are not structured, so lines are never looped over: one search finds the few that matter in a block,
and only these are cut out and decoded.
"""

from __future__ import annotations

import re
from typing import Final

from otel_bridge.entries.decoding import decode_line
from otel_bridge.entries.entry import Entry, Item, Malformed, StateChange
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.kinds import STRUCTURED_LINE

DEFAULT_MAX_LINE_BYTES: Final = 1 << 20

_NULS: Final = re.compile(rb"\0*+")


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
        self._next_byte = start_byte
        self._pending_start_byte = start_byte
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._skipping = False

    @property
    def pending_start_byte(self) -> int:
        """The offset up to which all lines are complete: that of the unfinished line's first byte."""
        return self._pending_start_byte

    def feed(self, block: bytes) -> list[Item]:
        """Takes the file's next bytes; the items of all lines that end in them."""
        items: list[Item] = []
        position = 0
        if self._next_byte > self._pending_start_byte:
            position = block.find(b"\n") + 1
            if position == 0:
                self._keep(block)
                self._next_byte += len(block)
                return items
            self._keep(block[: position - 1])
            self._finish_line(self._next_byte + position, items)
        complete = block.rfind(b"\n") + 1
        self._read_lines(block, position, complete, items)
        position = max(position, complete)
        self._pending_start_byte = self._next_byte + position
        self._keep(block[position:])
        self._next_byte += len(block)
        return items

    def flush(self) -> list[Item]:
        """Ends the unfinished line where the file ends: it counts if it is whole, else as malformed."""
        items: list[Item] = []
        if self._next_byte > self._pending_start_byte:
            self._finish_line(self._next_byte, items)
        return items

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

    def _finish_line(self, end_byte: int, items: list[Item]) -> None:
        start_byte = self._pending_start_byte
        if self._skipping:
            items.append(self._malformed(Flaw.TOO_LONG, start_byte))
        else:
            self._pending.append(b"\n")
            line = b"".join(self._pending)
            self._search(line, 0, len(line), start_byte, items)
        self._pending.clear()
        self._pending_bytes = 0
        self._skipping = False
        self._pending_start_byte = end_byte

    def _read_lines(self, block: bytes, position: int, complete: int, items: list[Item]) -> None:
        """Reads the whole lines between two positions of a block, first cutting out those over the limit.

        Looking back from the limit for a newline clears as many lines at once as fit below it.
        """
        while position < complete:
            end = block.rfind(b"\n", position, position + self._max_line_bytes + 1) + 1
            if end == 0:
                first = _NULS.match(block, position).end()  # type: ignore[union-attr]  # matches the empty string too
                end = block.find(b"\n", first) + 1
                if end - 1 - first > self._max_line_bytes:
                    items.append(self._malformed(Flaw.TOO_LONG, self._next_byte + position))
                    position = end
                    continue
            self._search(block, position, end, self._next_byte, items)
            position = end

    def _search(self, block: bytes, position: int, end: int, block_start_byte: int, items: list[Item]) -> None:
        """Finds and decodes what is structured in the whole lines between two positions of a block."""
        for found in STRUCTURED_LINE.finditer(block, position, end):
            start = found.start()
            if start < position:
                continue  # the line was read already
            line_start = block.rfind(b"\n", position, start) + 1 or position
            position = block.find(b"\n", start) + 1
            item = decode_line(block[line_start : position - 1].lstrip(b"\0"))
            if isinstance(item, (Entry, StateChange)):
                items.append(item)
            elif item is not None:
                items.append(self._malformed(item, block_start_byte + line_start))

    def _malformed(self, flaw: Flaw, start_byte: int) -> Malformed:
        return Malformed(flaw, self._path, start_byte)
