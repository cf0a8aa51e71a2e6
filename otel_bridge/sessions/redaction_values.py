"""How far a value goes that begins at some place of free text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from otel_bridge.sessions.redaction_names import MARKER

ONE_WORD_SCHEMES: Final = r"(?:basic|bearer|token|apikey|negotiate|ntlm)"
"""Schemes of an `Authorization` header before one word of credentials; the others have parameters to the line's end."""

_MARKER: Final = re.compile(MARKER)
_SCHEME: Final = re.compile(
    rf"{ONE_WORD_SCHEMES}[ \t]++(?=\S)|(?:digest|oauth|signature|hawk|aws4-hmac-sha256)[ \t]++[^\r\n]*+", re.IGNORECASE
)
_BARE: Final = re.compile(
    r"""(?:
        [^\s"'`\\()\[\]{},;&<]++
      | \\++(?!["'`])
      | (?<=[A-Za-z])'(?=[A-Za-z])                      # don't
      | [,;](?![\s"'`\\]|\Z)
      | [)\]}](?![\s"'`\\,;.:)\]}]|\Z)
      | &(?![\w.\-%]++=)                                # the next parameter of a query
      | <(?!/|redacted[:>]|[0-9]{1,6}\ env\ vars\ redacted>)
    )++""",
    re.VERBOSE,
)
_LITERAL_START: Final = re.compile(r"""([rRbBfFuU]{0,2})(\\*+)(["'`])""")
_QUOTE_OR_BRACKET: Final = re.compile(r"""["'`()\[\]{}]""")
_CONTINUED: Final = re.compile(r"\s*+(?:[+%|?]{1,2}+|[!=]==?|:=|=>|=)\s*+(?=\S)|\s++(?:or|if|else|:)\s++(?=\S)")
_ADJACENT_LITERAL: Final = re.compile(r"""\s++(?=[rRbBfFuU]{0,2}\\*+["'`])""")


@dataclass(frozen=True, slots=True)
class Literal:
    """A quoted string in a text, by positions; `closed` is False if the text ends before the string does."""

    content_start: int
    content_end: int
    end: int
    closed: bool


def literal_at(text: str, position: int) -> Literal | None:
    """The quoted string that begins here, prefix (`b'…'`) and escaped quotes (`\\"…\\"`) included, or None."""
    opening = _LITERAL_START.match(text, position)
    if opening is None:
        return None
    escapes, quote = len(opening[2]), opening[3]
    start = search_from = opening.end()
    while (at := text.find(quote, search_from)) >= 0:
        before = at
        while before > start and text[before - 1] == "\\":
            before -= 1
        if at - before <= escapes or (at - before - escapes) % (2 * (escapes + 1)) == 0:
            # With fewer backslashes it is the string around this one that ends.
            return Literal(start, max(before, at - escapes), at if at - before < escapes else at + 1, True)
        search_from = at + 1
    return Literal(start, len(text), len(text), False)


def value_end(text: str, position: int) -> int:
    """Where the value ends that begins at `position`, which is the position itself if nothing is there.

    Takes quoted strings, brackets with all that is in them, bare words, an authentication scheme before its
    credentials, and whatever an expression joins to them; a string or bracket left open goes to the end of the text.
    """
    scheme = _SCHEME.match(text, position)
    end = scheme.end() if scheme else position
    quote_opens = True  # after a bare word or a marker a quote closes the string that the whole phrase stands in
    while end < len(text):
        if marker := _MARKER.match(text, end):
            end, quote_opens = marker.end(), False
        elif quote_opens and (literal := literal_at(text, end)):
            end = literal.end
            if follows := _ADJACENT_LITERAL.match(text, end):
                end = follows.end()
        elif text[end] in "([{":
            end, quote_opens = _bracket_end(text, end), True
        elif bare := _BARE.match(text, end):
            end = bare.end()
            quote_opens = not text[end - 1].isalnum()
        elif end > position and (continued := _CONTINUED.match(text, end)):
            end, quote_opens = continued.end(), True
        else:
            break
    return end


def _bracket_end(text: str, position: int) -> int:
    """The position after the bracket that closes the one here; strings inside are passed over."""
    depth = 0
    while found := _QUOTE_OR_BRACKET.search(text, position):
        position = found.end()
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
            if depth == 0:
                return position
        else:
            escapes = found.start()
            while escapes > 0 and text[escapes - 1] == "\\":
                escapes -= 1
            literal = literal_at(text, escapes)
            position = literal.end if literal else position
    return len(text)
