"""Secrets that are known by their shape, whatever they are called."""

from __future__ import annotations

import re
from typing import Final

from otel_bridge.sessions.redaction_names import MARKER, REDACTED

_PEM: Final = re.compile(r"-----BEGIN [\s\S]*?(?:-----END [^\n-]{1,64}-----|\Z)")

# A token may start a word, or follow a colour, or an escape (`\n`) in the text of another string.
_AFTER_COLOUR: Final = r"(?<=[\[0-9;][A-Za-z])"
_START: Final = rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbfv0])|{_AFTER_COLOUR})"
# A token that was cut off is short, and ends where its string does.
_CUT: Final = r"""(?=["'`\\)\]}>]*(?:\.\.\.|…|\Z))"""
_TOKENS: Final = re.compile(
    rf"{_START}(?:"
    rf"gh[pousr]_(?:[A-Za-z0-9]{{16,}}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{4,}}|[A-Za-z0-9]+{_CUT})"
    rf"|github_pat_(?:[A-Za-z0-9_]{{20,}}|(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{{4,}}|[A-Za-z0-9_]+{_CUT})"
    rf"|sk-(?:[A-Za-z0-9_-]{{20,}}|(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{6,}}|[A-Za-z0-9_-]+{_CUT})"
    rf"|(?:AKIA|ASIA)(?:[A-Z0-9]{{12,}}|[A-Z0-9]+{_CUT})"
    rf"|(?:xox[abeprs]|xapp|glpat|pypi)-(?:[A-Za-z0-9_-]{{10,}}|(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]+{_CUT})"
    rf"|AIza(?:[A-Za-z0-9_-]{{20,}}|[A-Za-z0-9_-]+{_CUT})"
    rf"|[rs]k_(?:live|test)_(?:[A-Za-z0-9]{{8,}}|[A-Za-z0-9]+{_CUT})"
    r"|(?:npm|hf)_[A-Za-z0-9]{20,}"
    r"|(?:dckr_pat|dop_v1|shp(?:at|ca|pa|ss))_[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]+"
    r"|ya29\.[A-Za-z0-9_-]{16,}"
    rf"|eyJ(?:[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]*)+|[A-Za-z0-9_-]{{17,}}|[A-Za-z0-9_-]+{_CUT})"
    r")"
    r"|gh[pousr]_[A-Za-z0-9]{30,}"
)

# A password can hold a slash; what begins as a port and a path (`//host:80/@scope/…`) is none.
_URL_PASSWORD: Final = re.compile(r"""(://[^\s/?#@:"'`<>\\\[]*+:)(?![0-9]{1,5}/)([^\s"'`]{1,300})@""")
_URL_USER: Final = re.compile(r"""(https?://)(?!git@|<)([^\s/?#@:"'`<>\\]++)@""", re.IGNORECASE)
_BEARER: Final = re.compile(
    rf"""(?:(?<![A-Za-z])|{_AFTER_COLOUR})(bearer\s++)({MARKER}|[^\s"'`,;()<>\[\]{{}}\\]+)""", re.IGNORECASE
)
_BASIC: Final = re.compile(
    rf"""(?:(?<![A-Za-z])|{_AFTER_COLOUR})(basic\s++)(?=[A-Za-z+/]*+[0-9=])[A-Za-z0-9+/]{{8,}}={{0,2}}(?![A-Za-z0-9+/=])""",
    re.IGNORECASE,
)
_SIGNED_URL: Final = re.compile(
    r"""([?&](?:x-(?:amz|goog)-signature|sig)=|//hooks\.slack\.com/services/|//api\.telegram\.org/bot)"""
    rf"""(?!{MARKER})[^\s"'`&<>\\]++""",
    re.IGNORECASE,
)
"""URLs that let in whoever has them: signed ones, Slack's webhooks, Telegram's bots."""
_USER_FLAG: Final = re.compile(rf"""(\s(?:-u|--user)[= ]\s*+["']?[^\s:"'/]{{1,64}}:)(?!{MARKER})[^\s"'`]++""")
"""The password of a user that `curl` and its like are given."""
_SSHPASS: Final = re.compile(rf"""(\bsshpass\s++-p\s*+)(?!{MARKER})[^\s"'`]++""")
_AFTER_SIGN: Final = (
    ("basic", _BASIC),
    ("sig", _SIGNED_URL),
    ("slack.com/s", _SIGNED_URL),
    ("telegram.org", _SIGNED_URL),
    ("curl", _USER_FLAG),
    ("sshpass", _SSHPASS),
)
"""What a text has in lower case where the pattern may find something: to look for that takes no time."""
_MARKED: Final = re.compile(MARKER)


def redact_keys(text: str) -> str:
    """The text without PEM blocks; of one that was cut off nothing stays up to the end of the text."""
    return _PEM.sub(REDACTED, text) if "-----BEGIN " in text else text


def redact_tokens(text: str) -> str:
    """The text without tokens of known services: GitHub, GitLab, Slack, Google, Stripe, Shopify, npm, PyPI, Hugging
    Face, Docker Hub, DigitalOcean, `sk-` keys, AWS access key ids, JSON web tokens."""
    return _TOKENS.sub(REDACTED, text)


def redact_credentials(text: str) -> str:
    """The text without the passwords in URLs' user info (of a web address all of it), and what follows `Bearer`.

    Nor has it the credentials after `Basic`, signatures in URLs, and passwords that commands are given by a flag.
    """
    if "://" in text:
        text = _URL_USER.sub(rf"\1{REDACTED}@", _URL_PASSWORD.sub(_hide_url_password, text))
    lowered = text.lower()
    for sign, pattern in _AFTER_SIGN:
        if sign in lowered:
            text = pattern.sub(rf"\1{REDACTED}", text)
    return _BEARER.sub(_hide_bearer, text)


def _hide_url_password(found: re.Match[str]) -> str:
    return found[0] if _MARKED.fullmatch(found[2]) else f"{found[1]}{REDACTED}@"


def _hide_bearer(found: re.Match[str]) -> str:
    return found[0] if _MARKED.fullmatch(found[2]) else found[1] + REDACTED
