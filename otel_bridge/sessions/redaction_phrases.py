"""Secrets in free text that are known by the name before them: `password='…'`, `--token=…`, `API_KEY: …`.

The text may be anything: a shell command, source code, a program's output, a piece of JSON inside a string. Where it is
unclear how far a value goes, more is hidden rather than less. The work grows with the length of the text alone, for
patterns are possessive or bounded, and the search goes on where a value ended.
"""

from __future__ import annotations

import re
from typing import Final

from otel_bridge.sessions.redaction_names import (
    COLOUR,
    MARKER,
    NAME_IN_TEXT,
    REDACTED,
    is_environment_name,
    is_sensitive_name,
)
from otel_bridge.sessions.redaction_values import ONE_WORD_SCHEMES, literal_at, value_end

_ESCAPE: Final = re.compile(r"\A(?:[nrtbfv0]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")

_COLOURS: Final = re.compile(rf"(?:{COLOUR})*+")
_CLOSED: Final = rf"""(?:\\*+["'`])?+{_COLOURS.pattern}(?:\[\w*+\])?+[\])]*+"""
_OPERATOR: Final = re.compile(
    rf"{_CLOSED}(?:\s*+(?:[!=]==?|[<>:]=|[-+*/|?&]{{1,2}}=|=[>~]|->|=|:(?!:)|%3[dD])\s*+|\s++[<>]\s++|>(?=[^\s<>=]))"
)
_BEFORE_LITERAL: Final = re.compile(
    r"""(?:\\*+["'`][\])]*+\s*+,\s*+|[ \t]*+\(\s*+|\s++(?:(?:is|was|in|to|of|equals)\s++)?+)"""
    r"""(?=[rRbBfFuU]{0,2}\\*+["'`])"""
)
_AFTER_FLAG: Final = re.compile(r"""(?:\\*+["'`]\s*+,\s*+|\s++)(?=\\*+["'`]?+[^\s\-"'`])""")
_BEFORE_MEMBER_VALUE: Final = re.compile(
    r"""\\*+["']\s*+,\s*+"""
    r"""(?:\\*+["'][\w.\-]{1,64}\\*+["']\s*+:\s*+(?:\\*+["'][^"'\\]{0,200}+\\*+["']|[\w.+\-]{1,40}+)\s*+,\s*+){0,4}"""
    r"""\\*+["'](?:value|result)\\*+["']\s*+:\s*+"""
)
"""From the name of a variable to its value, in an object whose text was cut off and is no JSON any more."""

_BEFORE_ENVIRONMENT: Final = re.compile(r"""(?:\\*+["'`])?+\s*+(?:(?:=>|[:=])\s*+|\((?=\s*+[{\[]))\s*+(?=[{\[])""")
_ENVIRONMENT_ITEM: Final = re.compile(rf"(?:\[[^\]\n]{{0,200}}\])?+{_OPERATOR.pattern}")

_HIDDEN_ALREADY: Final = re.compile(rf"(?:{ONE_WORD_SCHEMES}\s+)?(?:{MARKER})", re.IGNORECASE)
_CONSTANT: Final = re.compile(
    r"none|true|false|null|nil|undefined|nan|lambda|str|string|bytes|int|integer|bool|boolean|float|number|any|object",
    re.IGNORECASE,
)
"""Bare words with nothing to hide: constants, and the types of annotated code."""

_LINE_NUMBER: Final = re.compile(r"[0-9]{1,7}(?!\w)")
_SOURCE_FILE: Final = re.compile(
    r"\.(?:py[wi]?|[mc]?[jt]sx?|go|rs|java|kt|rb|php|cs|[ch](?:c|pp|xx)?|swift|lua|pl|sh|json|ya?ml|toml|txt|md)\Z"
)
_EXCEPTIONS: Final = ("Error", "Exception", "Warning")
_NOUNS: Final = ("key", "keys", "token", "tokens", "Key", "Token", "pass")
"""What parsers and configurations complain about (`Unexpected token < in JSON`, `missing key "port"`), and a statement
of Python."""

_COOKIES: Final = re.compile(r"(?:set-)?cookie2?", re.IGNORECASE)
_REST_OF_LINE: Final = re.compile(r"""[^\r\n"'`]*+""")
_BLOCK: Final = re.compile(r"[|>][+\-0-9]{0,2}[ \t]*+(?:\r?\n(?:[ \t]++[^\n]*+|(?=\r?\n)))++")
"""A value of YAML that goes on as long as its lines are indented."""


def redact_phrases(text: str) -> str:
    """The text with a marker for every value that follows a sensitive name; names and all the rest stay."""
    parts: list[str] = []
    copied = position = 0
    while found := NAME_IN_TEXT.search(text, position):
        position = found.end()
        if found[1] is None:
            continue
        value_start, value_stop = _secret_after(text, found.start(), position)
        if value_start == value_stop:
            continue
        position = value_stop
        hidden = _hide(text, value_start, value_stop)
        if hidden is not None:
            parts += (text[copied:value_start], hidden)
            copied = value_stop
    return "".join((*parts, text[copied:])) if parts else text


def _secret_after(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the secret lies that the name between two positions speaks of; an empty range if there is none."""
    name = text[start:end]
    unescaped = _ESCAPE.sub("", name, 1) if start and text[start - 1] == "\\" else name  # of `\ntoken=…` in a literal
    if is_sensitive_name(name) or is_sensitive_name(unescaped):
        return _after_sensitive_name(text, name, _after_colours(text, end))
    if is_environment_name(name):
        return _after_environment_name(text, name, _after_colours(text, end))
    return end, end


def _after_colours(text: str, position: int) -> int:
    colours = _COLOURS.match(text, position)
    return colours.end() if colours else position


def _after_sensitive_name(text: str, name: str, end: int) -> tuple[int, int]:
    operator = _OPERATOR.match(text, end)
    if operator is not None:
        start = operator.end()
        if operator[0] == ":" and _LINE_NUMBER.match(text, start) and _SOURCE_FILE.search(name):
            return end, end  # `auth.py:42`
        if operator[0].startswith(":") and name.endswith(_EXCEPTIONS):
            return end, end  # `KeyError: 'x'`
        sign = operator[0].strip()
        if sign in ("<", ">") and name in _NOUNS:
            return end, end
        if sign == ":" and name == "PASS":
            return end, end  # what a test run says
        return start, (_long_value_end(text, name, start) if sign == ":" else None) or value_end(text, start)
    if name.startswith("-"):
        flag = _AFTER_FLAG.match(text, end)
        return (flag.end(), value_end(text, flag.end())) if flag else (end, end)
    member = _BEFORE_MEMBER_VALUE.match(text, end)
    if member is not None:
        return member.end(), value_end(text, member.end())
    before = _BEFORE_LITERAL.match(text, end)
    literal = literal_at(text, before.end()) if before else None
    if before is None or literal is None or name.endswith(_EXCEPTIONS) or _SOURCE_FILE.search(name):
        return end, end
    if before[0].isspace() and name in _NOUNS:
        return end, end
    return before.end(), literal.end


def _long_value_end(text: str, name: str, start: int) -> int | None:
    """Where a value ends that goes on beyond its first words: a block of YAML, a header's cookies; else None."""
    if (block := _BLOCK.match(text, start)) is not None:
        return block.end()
    cookies = _REST_OF_LINE.match(text, start) if _COOKIES.fullmatch(name) else None
    return cookies.end() if cookies and cookies[0] else None


def _after_environment_name(text: str, name: str, end: int) -> tuple[int, int]:
    whole = _BEFORE_ENVIRONMENT.match(text, end)
    if whole is not None:
        return whole.end(), value_end(text, whole.end())
    item = _ENVIRONMENT_ITEM.match(text, end)
    if item and "=" in item[0] and (item[0].startswith("[") or not is_environment_name(name.rpartition(".")[2])):
        return item.end(), value_end(text, item.end())  # `process.env.X = …`, `os.environ["X"] = …`
    return end, end


def _hide(text: str, start: int, end: int) -> str | None:
    """What takes the place of a value, or None where it can stay; one literal keeps its quotes."""
    if _HIDDEN_ALREADY.fullmatch(text, start, end) or _CONSTANT.fullmatch(text, start, end):
        return None
    literal = literal_at(text, start)
    if literal is None or literal.end != end or not literal.closed:
        return REDACTED
    if literal.content_start == literal.content_end:
        return None
    if _HIDDEN_ALREADY.fullmatch(text, literal.content_start, literal.content_end):
        return None
    return text[start : literal.content_start] + REDACTED + text[literal.content_end : end]
