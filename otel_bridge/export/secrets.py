"""What we send to show who we are, kept out of whatever a backend says back.

A backend, or a proxy before it, may repeat a request's headers in an error text, a content type or the target of a
redirect. Every reply carries the secrets of its transport, and `verdict.judge`, through which all words of a backend
go, masks them before it cuts or escapes anything.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

MASK = "..."

_MIN_CHARS = 3
"""What is shorter hides nothing, and masking it would take the sense out of any text."""

_MIN_CHARS_OF_PARTS = 6
"""A value may be a sentence: its short words are no secrets by themselves."""

_MIN_CHARS_INSIDE_WORDS = 8
"""What is shorter is masked only where it stands as a word by itself: a tenant `prod` is not in `product`."""

_SEPARATORS = re.compile(r"""[\s,;"']+""")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9-]* +(?=\S)")
_CREDENTIALS = frozenset({"authorization", "proxy-authorization"})
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_NO_WORD_BEFORE, _NO_WORD_AFTER = "(?<![A-Za-z0-9])", "(?![A-Za-z0-9])"


class Secrets:
    """The values of headers and the user info of URLs, in the forms in which they are sent or repeated.

    Each is found in any case, also where its signs are escaped as in a URL, in JSON, in HTML or in a language's own
    quotes. No secret is in its `repr`.
    """

    __slots__ = ("_pattern", "_values")

    def __init__(self, headers: Mapping[str, str] | None = None, urls: Iterable[str] = ()) -> None:
        values = {form for name, value in (headers or {}).items() for form in _of_header(name.lower(), value)}
        values |= {form for url in urls for form in _of_url(url)}
        self._values = sorted((one for one in values if len(one) >= _MIN_CHARS), key=lambda one: (-len(one), one))
        self._pattern: re.Pattern[str] | None = None

    def masked(self, text: str) -> str:
        """`text` with `...` in place of each secret."""
        if not text or not self._values:
            return text
        if self._pattern is None:  # most backends never say a word
            self._pattern = re.compile("|".join(map(_pattern, self._values)), re.IGNORECASE)
        return self._pattern.sub(MASK, text)


NO_SECRETS = Secrets()


def _of_header(name: str, value: str) -> Iterator[str]:
    """The value and its parts: a backend that says `invalid token X` was sent `Bearer X`."""
    scheme = _SCHEME.match(value) if name in _CREDENTIALS else None
    credentials = value[scheme.end() :] if scheme else value
    if scheme and scheme[0].strip().lower() == "basic":
        yield from _of_basic(credentials)
    for whole in (credentials, unquote(credentials)):
        yield whole
        for part in _SEPARATORS.split(whole):
            yield from (one for one in (part, part.partition("=")[2]) if len(one) >= _MIN_CHARS_OF_PARTS)
    yield from (value, unquote(value))


def _of_basic(credentials: str) -> Iterator[str]:
    try:
        decoded = base64.b64decode(credentials, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return
    yield decoded
    yield from decoded.partition(":")[::2]


def _of_url(url: str) -> Iterator[str]:
    """User, password and both together, as written, decoded, and as the Basic credentials that are made of them."""
    info = url.partition("://")[2].rpartition("@")[0]
    if not info:
        return
    user, colon, password = info.partition(":")
    for one, another in ((user, password), (unquote(user), unquote(password))):
        yield from (one, another, f"{one}{colon}{another}")
        for charset in ("latin-1", "utf-8"):
            yield base64.b64encode(f"{one}:{another}".encode(charset, "replace")).decode()


def _pattern(value: str) -> str:
    whole = "".join(map(_escapes, value))
    return whole if len(value) >= _MIN_CHARS_INSIDE_WORDS else _NO_WORD_BEFORE + whole + _NO_WORD_AFTER


def _escapes(char: str) -> str:
    r"""One sign of a secret and the ways of writing it: `%2F`, `\/`, `\u002f`, `\x2f`, `&#47;`, `&amp;`."""
    if char.isalnum() and char.isascii():
        return char
    code = ord(char)
    percent = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "replace"))
    ways = [percent, f"\\\\u{code:04x}", f"\\\\x{code:02x}", f"&#0*{code};", f"&#x0*{code:x};"]
    if char in _NAMED:
        ways.append(f"&{_NAMED[char]};")
    if char == " ":
        ways.append(r"\+")
    return f"(?:{'|'.join(ways)}|\\\\?{re.escape(char)})"
