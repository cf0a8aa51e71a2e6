"""The errors a person can cause, or has to know of.

    BridgeError
    ├── SettingError    a flag or a variable has a value that cannot be used
    ├── SourceError     a log cannot be read
    ├── StateError      what the bridge keeps between two runs cannot be read or written
    └── OutputError     standard output cannot be written

Each is one line: what is wrong, and what to do next. Whatever a backend says or does is no error but a value (see
`otel_bridge.export.verdict`); an exception that is not in this tree is a mistake of this program.
"""

from __future__ import annotations


class BridgeError(Exception):
    """Something a person can put right: `message` says what is wrong, `hint` the next step.

    `exit_code` is what a command that ends by it returns to the shell.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class SettingError(BridgeError):
    """A flag or an environment variable has a value that cannot be used; the message names it."""

    exit_code = 2


class SourceError(BridgeError):
    """A log, or the folder it should be in, cannot be read; the message names the path."""


class StateError(BridgeError):
    """The state (database, dead letters) cannot be read or written; the message names the file."""


class OutputError(BridgeError):
    """Standard output cannot be written: closed, or its disk is full; the message says why."""
