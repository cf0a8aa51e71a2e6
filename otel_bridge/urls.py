"""URLs that a person gives: read strictly, and never shown with what may be a password.

Libraries differ in where they see the end of `http://user:pass#word@host`, and say in their errors what they saw. So
no word of theirs is shown, and what they might read in two ways is refused.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, unquote, urlsplit

from otel_bridge.errors import SettingError

_MAX_SHOWN_CHARS = 200
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_LABEL = re.compile(r"[A-Za-z0-9_-]+")
_MAX_LABEL_CHARS = 63
_MAX_HOST_CHARS = 253


def read_url(value: str, source: str, example: str) -> SplitResult:
    """The parts of `value`; its host and port can be used, its scheme may be any, and its host may be missing.

    Raises SettingError, which names `source` (a flag or a variable) and shows nothing of the value.
    """
    hint = f"write it as in {example}"
    if any(char.isspace() or not char.isprintable() for char in value):
        raise SettingError(f"{source}: a URL has no spaces and control characters in it", hint)
    rest = value.partition("//")[2]
    authority = _END_OF_AUTHORITY.split(rest, maxsplit=1)[0]
    if "@" in rest[len(authority) :]:
        raise SettingError(
            f"{source}: not clear where the user and password end",
            "in them, #, /, ? and \\ must be percent-encoded: %23, %2F, %3F, %5C (and an @ behind the host: %40)",
        )
    if "\\" in value:
        raise SettingError(f"{source}: a URL has no \\ in it", hint)
    try:
        url = urlsplit(value)
        host = url.hostname or ""
    except ValueError:
        raise SettingError(f"{source}: not a URL", hint) from None
    try:
        _ = url.port  # is only looked at, and refused, when it is asked for
    except ValueError:
        raise SettingError(f"{source}: not a URL, its port is no number from 0 to 65535", hint) from None
    try:
        unquote(url.netloc.rpartition("@")[0]).encode("latin-1")
    except UnicodeEncodeError:
        raise SettingError(
            f"{source}: the user or password has a character that cannot be sent", "use Latin-1, or pass --header"
        ) from None
    if problem := _problem_of_host(host):
        raise SettingError(f"{source}: {problem}", hint)
    return url


def _problem_of_host(host: str) -> str:
    """What keeps a name from being looked up (RFC 1035, 2.3.4); underscores are common inside a machine's networks."""
    if not host or ":" in host:  # `urlsplit` has checked what stands in brackets
        return ""
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return "its host is no name that can be looked up"
    labels = host.removesuffix(".").split(".")
    if not all(labels):
        return "its host has a dot too many"
    if max(map(len, labels)) > _MAX_LABEL_CHARS or len(host) > _MAX_HOST_CHARS:
        return "its host is longer than a name can be (63 characters between two dots, 253 in all)"
    if not all(map(_LABEL.fullmatch, labels)):
        return "its host has a character that no name has"
    return ""


def without_user_info(url: str) -> str:
    """Scheme, host, port and path of a URL, cut: what may be shown of it. Nothing up to the last @ is, whatever it is.

    `url` may be no URL at all.
    """
    scheme, separator, rest = url.partition("//")
    if not separator:
        scheme, rest = "", url
    shown = re.split(r"[?#]", rest.rpartition("@")[2], maxsplit=1)[0]
    return clipped(f"{scheme}{separator}{shown}", _MAX_SHOWN_CHARS)


def clipped(text: str, max_chars: int = 80) -> str:
    """`text`, or its beginning where it is longer than anybody reads."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
