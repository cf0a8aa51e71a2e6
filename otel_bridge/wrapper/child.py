"""The server as our child: started with pipes, sent every signal that only we get, and ended by what ended it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
NOT_FOUND, NOT_STARTED = 127, 126
"""The exit status of a shell for a command that is not there, and for one that cannot be started."""


class CannotStartError(Exception):
    """The command cannot be started; `exit_code` is what a shell would end with."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(slots=True)
class Child:
    """The running server and our ends of its pipes."""

    process: subprocess.Popen[bytes]
    stdin: int
    stdout: int

    @classmethod
    def start(cls, command: Sequence[str]) -> Child:
        """Start the command, its stderr being ours. Raises CannotStartError."""
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        try:
            # Whatever else we were given is the server's, as it would be without us; what we opened closes itself.
            process = subprocess.Popen(command, stdin=theirs_in, stdout=theirs_out, close_fds=False)
        except OSError as error:
            os.close(stdin)
            os.close(stdout)
            raise _cannot_start(command[0], error) from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return cls(process, stdin, stdout)

    @property
    def is_in_our_group(self) -> bool:
        """Whether it gets what is sent to our process group; False once it has ended, or left it."""
        try:
            return os.getpgid(self.process.pid) == os.getpgrp()
        except ProcessLookupError:
            return False

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self.process.send_signal(number)


def _cannot_start(command: str, error: OSError) -> CannotStartError:
    if isinstance(error, FileNotFoundError):
        return CannotStartError(
            f"cannot start `{command}`: there is no such command; check its name and PATH", NOT_FOUND
        )
    reason = (error.strerror or str(error)).lower()
    return CannotStartError(f"cannot start `{command}`: {reason}; check that it is a program", NOT_STARTED)


def end_as(exit_code: int) -> NoReturn:
    """End this process as the child ended: with its exit code, or by the same signal (a negative code)."""
    if exit_code < 0:
        number = -exit_code
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core that matters is the child's
        with contextlib.suppress(OSError):  # SIGKILL needs no preparation
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.raise_signal(number)  # to this thread: another one may be waiting for signals
        exit_code = 128 + number  # it was one that ends nobody, or is ignored
    os._exit(exit_code)
