"""What redaction looked at before and found clean: the same names, ids, tools and files come with every entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

LONGEST_CHARS = 256
MOST = 4096
_DEEPEST = 4
"""Objects and lists in each other that are looked through; what lies deeper is walked through in the usual way."""

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


harmless_namings = CleanTexts()
"""Names and expressions that speak of no secret: the value beside them is not hidden for what they say."""


def is_known(fields: Mapping[str, object]) -> bool:
    """Whether every name and text in an object was found clean before: then it needs no walk."""
    return clean_names.issuperset(fields) and _are_known(fields.values(), 0)


def _are_known(values: Iterable[object], depth: int) -> bool:
    for value in values:
        kind = type(value)
        if kind is str:
            if value not in clean_texts:
                return False
        elif kind is dict:
            inner = cast("dict[str, object]", value)
            if depth >= _DEEPEST or not clean_names.issuperset(inner) or not _are_known(inner.values(), depth + 1):
                return False
        elif kind is list:
            # Of texts in a list, one can say that the next is a secret.
            items = cast("list[object]", value)
            if depth >= _DEEPEST or str in map(type, items) or not _are_known(items, depth + 1):
                return False
        elif kind not in _NO_TEXT:
            return False
    return True
