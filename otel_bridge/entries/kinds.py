"""Which messages are structured: the kinds of an entry, and the one unstructured message that is read as well."""

from __future__ import annotations

import re
from typing import Final

KNOWN_KINDS: Final = frozenset(
    {
        # The specification, "Log Entry Types".
        "tool:call",
        "tool:response",
        "tool:error",
        "debug:state",
        "debug:breakpoint",
        "session:created",
        "session:closed",
        "debug:output",
        # Written by the real server (0.24.2 and newer) beyond the specification.
        "tool:set_breakpoint:result",
        "tool:evaluate_expression",
        "tool:evaluate_expression:error",
        "tool:get_local_variables",
        "tool:get_local_variables:error",
        "debug:variables",
        "debug:evaluate",
        "debug:source_context",
        "session:attach-mode",
        "session:attach-failed",
    }
)

STRUCTURED_LINE: Final = re.compile(
    rb'"message"[ \t]*:[ \t]*"(?:(?:tool|debug|session):|\[SM _updateSessionState )',
)
"""The bytes test: what a line must contain to be worth decoding.

It may let too much through (a `message` key inside a request), never too little: the server's JSON writer escapes
none of these characters. A quoted copy inside a string has `\\"message\\":` and is left out.
"""

_KIND: Final = re.compile(r"((?:tool|debug|session):\S+)(?:\s(.*))?", re.DOTALL)
_STATE_CHANGE: Final = re.compile(r"\[SM _updateSessionState ([^\s\]]+)\] State change: (\S+) -> (\S+)")


def split_kind(message: str) -> tuple[str, str] | None:
    """The kind of a message and the text glued behind it; None if the message is not structured.

    winston appends an entry's own `message` to the kind, with a space between. The kind is the whole first word, so a
    kind that nobody has seen yet (`debug:memory`) is one too; a prefix alone (`session: foo`) is prose.
    """
    if message in KNOWN_KINDS:
        return message, ""
    found = _KIND.fullmatch(message)
    if found is None:
        return None
    return found[1], found[2] or ""


def split_state_change(message: str) -> tuple[str, str, str] | None:
    """Session id, state before and state after of a state line's message; None if it is another message.

    The whole message must match: a client can put text into many messages, but into none of this form.
    """
    found = _STATE_CHANGE.fullmatch(message)
    return None if found is None else (found[1], found[2], found[3])
