"""Which names say that their value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

REDACTED: Final = "<redacted>"
"""What stands where a secret was."""

MARKER: Final = r"<redacted(?::[a-z0-9-]{1,40})?>|<[0-9]{1,6} env vars redacted>"
"""Pattern of our own marker and of those that the server writes (`<redacted:jwt>`): what it hid is told apart."""

# The specification's two lists ("Data Truncation Rules"): patterns anywhere in a name, and whole words of a name.
# `passphrase`, `creds`, `pass`, cookies, and `passwd` anywhere, are ours.
_PATTERNS: Final = re.compile(
    r"api[_\-. ]?key|secret|token|password|passwd|passphrase|credential|auth|session[_\-. ]?id"
    r"|access[_\-. ]?key|signing|private[_\-. ]?key",
    re.IGNORECASE,
)
_TELLING_WORDS: Final = frozenset(
    ("pat", "key", "pwd", "passwd", "cred", "creds", "bearer", "oauth", "jwt", "passcode", "cookie", "cookies")
)
_TELLING_LAST_WORDS: Final = frozenset(("pass",))
"""Words that tell at the end of a name alone: `DB_PASS` is a password, `pass_count` a number."""
_ENVIRONMENT_WORDS: Final = frozenset(("env", "envs", "environ", "environment"))

NAMING: Final = ("name", "expression", "key", "evaluateName", "variable", "header")
"""Names of what says what a value beside it is."""

NAMED: Final = frozenset(("value", "val", "result", "newValue", "data", "content"))
"""Names of such a value: it is hidden where what stands beside it speaks of a secret."""

_OWN_IDS: Final = re.compile(r"(?<![A-Za-z0-9])sessionId(?![A-Za-z0-9])|\A(?:debug|mcp)\.session\.id\Z")
"""The session's id by the names that the log and our spans give it. Every other spelling (`session_id`, a cookie's
`sessionid`) belongs to the debugged program."""

COLOUR: Final = r"(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033|e))\[[0-9;]{0,20}[A-Za-z]"
"""Pattern of what a terminal is told by, also as a literal spells it: the letter at its end begins no name."""

_COLOURS: Final = re.compile(COLOUR)
_WORD_OF_A_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
NAME_IN_TEXT: Final = re.compile(rf"([\w$.\-]+)|{MARKER}|{COLOUR}")
"""A name, as group 1, or what is passed over: a marker (the server's speak of passwords and keys), or a colour."""

_LONGEST_REMEMBERED: Final = 128


def is_sensitive_name(name: str) -> bool:
    """Whether a value under this name is a secret, by the specification's two lists; `sessionId` is none."""
    return _is_sensitive(name) if len(name) <= _LONGEST_REMEMBERED else _is_sensitive.__wrapped__(name)


@lru_cache(maxsize=4096)
def _is_sensitive(name: str) -> bool:
    name = _OWN_IDS.sub("", _COLOURS.sub(" ", name))
    words = _words(name)
    return (
        _PATTERNS.search(name) is not None
        or not _TELLING_WORDS.isdisjoint(words)
        or not _TELLING_LAST_WORDS.isdisjoint(words[-1:])
    )


def is_environment_name(name: str) -> bool:
    """Whether a name is that of a program's environment (`env`, cppdbg's `environment`, `extraEnv`, `os.environ`).

    Names inside an environment are anybody's, so no list could tell which of its values are secrets.
    """
    return _is_environment(name) if len(name) <= _LONGEST_REMEMBERED else _is_environment.__wrapped__(name)


@lru_cache(maxsize=4096)
def _is_environment(name: str) -> bool:
    return not _ENVIRONMENT_WORDS.isdisjoint(_words(name))


def names_a_secret(text: str) -> bool:
    """Whether a name or an expression (`cfg.api_key`, `len(token)`, `os.environ`) speaks of a secret anywhere in it."""
    return any(is_sensitive_name(name) or is_environment_name(name) for name in NAME_IN_TEXT.findall(text))


def _words(name: str) -> list[str]:
    """The words of a name, split at delimiters and camelCase boundaries: `GITHUB_PAT` has `pat`, `PATH` has not."""
    return [word.lower() for word in _WORD_OF_A_NAME.findall(name)]
