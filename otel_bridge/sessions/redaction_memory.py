"""What redaction looked at before and found clean: the same names, ids, tools and files come with every entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

LONGEST_CHARS = 256
MOST = 4096
_DEEPEST = 4
"""Objects in objects that are looked through; what lies deeper is walked through in the usual way."""

_NO_TEXT = frozenset((int, float, bool, type(None)))


class CleanTexts(set[str]):
    """Short texts that hold no secret, at most `MOST` of them; shared by all threads."""

    __slots__ = ()

    def remember(self, text: str) -> None:
        """Keep a text that was found clean, unless it is long."""
        if len(text) <= LONGEST_CHARS:
            if len(self) >= MOST:
                self.clear()
            self.add(text)


clean_texts = CleanTexts()
"""Values."""

clean_names = CleanTexts()
"""Names that say nothing of their value either."""


def is_known(fields: Mapping[str, object], depth: int = 0) -> bool:
    """Whether every name and text in an object was found clean before: then it needs no walk."""
    for name, value in fields.items():
        if name not in clean_names:
            return False
        kind = type(value)
        if kind is str:
            if value not in clean_texts:
                return False
        elif kind is dict:
            if depth >= _DEEPEST or not is_known(cast("dict[str, object]", value), depth + 1):
                return False
        elif kind not in _NO_TEXT:
            return False
    return True
