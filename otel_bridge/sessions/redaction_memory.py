"""What redaction looked at before and found clean: the same names, ids, tools and files come with every entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from otel_bridge.sessions.redaction_names import NAMED, NAMING

LONGEST_CHARS: Final = 256
MOST: Final = 4096
_DEEPEST: Final = 4
"""Objects and lists in each other that are looked through; what lies deeper is walked through in the usual way."""

_NO_TEXT: Final = frozenset((int, float, bool, type(None)))


class CleanTexts:
    """Short texts that hold no secret, at most `MOST` of them and those that it began with; shared by all threads."""

    __slots__ = ("_always", "texts")

    def __init__(self, always: Iterable[str] = ()) -> None:
        self._always = frozenset(always)
        self.texts = set(self._always)

    def remember(self, text: str) -> None:
        """Keep a text that was found clean, unless it is long."""
        if len(text) <= LONGEST_CHARS:
            if len(self.texts) >= MOST:
                self.forget()
            self.texts.add(text)

    def forget(self) -> None:
        """Begin anew."""
        self.texts.clear()
        self.texts.update(self._always)


clean_texts: Final = CleanTexts()
"""Values."""

clean_names: Final = CleanTexts()
"""Names that say nothing of their value either."""

clean_beside_harmless: Final = CleanTexts(NAMED)
"""These, and names whose value is hidden only beside one that speaks of a secret."""

harmless_namings: Final = CleanTexts()
"""Names and expressions that speak of no secret: the value beside them is not hidden for what they say."""


def remember_name(name: str) -> None:
    """Keep a name that is clean itself and says nothing of its value."""
    clean_names.remember(name)
    clean_beside_harmless.remember(name)


def is_known(fields: Mapping[Any, object]) -> bool:
    """Whether every name and text in an object was found clean before: then it needs no walk."""
    return _is_known(fields, 0)


def _is_known(fields: Mapping[Any, object], depth: int) -> bool:
    if not clean_names.texts.issuperset(fields):
        if not clean_beside_harmless.texts.issuperset(fields):
            return False
        for key in NAMING:
            naming = fields.get(key)
            if isinstance(naming, str) and naming not in harmless_namings.texts:
                return False
    return _are_known(fields.values(), depth)


def _are_known(values: Iterable[object], depth: int) -> bool:
    texts = clean_texts.texts
    for value in values:
        kind = type(value)
        if kind is str:
            if value not in texts:
                return False
        elif kind is dict:
            if depth >= _DEEPEST or not _is_known(cast("dict[str, object]", value), depth + 1):
                return False
        elif kind is list:
            # Of texts in a list, one can say that the next is a secret.
            items = cast("list[object]", value)
            if depth >= _DEEPEST or str in map(type, items) or not _are_known(items, depth + 1):
                return False
        elif kind not in _NO_TEXT:
            return False
    return True
