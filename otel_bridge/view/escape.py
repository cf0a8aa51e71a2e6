"""Text from a log made fit for a terminal.

Log text is untrusted: a session name may hold an escape sequence that rewrites the screen, or a character that turns
the rest of the line round. Everything that this package shows of a log goes through `printable`. Its result is plain
text, not rich markup: give it to rich as a `Text`, so that `[red]` in a log stays what it is.
"""

from __future__ import annotations

import unicodedata

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Controls, formatting (bidi overrides, zero-width joiners), unassigned, private, surrogates, line separators."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters of other categories that show nothing or change their neighbour: fillers, variation selectors."""

_MARKS_IN_A_ROW = 4
"""More combining marks than any script stacks on one letter; a longer pile reaches into the lines above."""


def printable(text: str, max_width: int | None = None, *, ascii_only: bool = False) -> str:
    r"""`text` on one line, with every character that would act on the terminal shown as an escape such as `\x1b`.

    With `max_width` at most that many terminal cells (wide characters take two), the cut marked by an ellipsis.
    With `ascii_only` every other character becomes an escape too, for outputs that can carry no more.
    """
    if text.isascii() and text.isprintable() and (max_width is None or len(text) <= max_width):
        return text
    from rich.cells import cell_len  # a third of a megabyte, which a quiet bridge need not hold

    dots = "..." if ascii_only else "…"
    pieces: list[str] = []
    width = cut_at = marks = 0
    for character in text:
        piece = _escaped(character, ascii_only)
        size = cell_len(piece)
        marks = marks + 1 if size == 0 else 0
        if marks > _MARKS_IN_A_ROW:
            piece = _code(character)
            size = len(piece)
        if max_width is not None:
            if width + size > max_width:
                return "".join(pieces[:cut_at]) + dots[: max(max_width, 0)]
            if width + size <= max_width - len(dots):
                cut_at = len(pieces) + 1
        pieces.append(piece)
        width += size
    return "".join(pieces)


def shows_itself(character: str) -> bool:
    """Whether a terminal shows the character, and neither obeys it nor hides it."""
    return character not in _UNSEEN and unicodedata.category(character) not in _UNSEEN_CATEGORIES


def _escaped(character: str, ascii_only: bool) -> str:
    if " " <= character <= "~":
        return character
    if character in _SHORT:
        return _SHORT[character]
    return character if shows_itself(character) and not ascii_only else _code(character)


def _code(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
