"""The process's standard streams, made such that a full disk or a reader that left ends nothing by surprise.

What can't be said on standard error is left unsaid: whatever works goes on working without its words. Standard output
is what a command is for: that it cannot be written is an error, raised once.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TextIO

from otel_bridge.errors import OutputError

_STDOUT, _STDERR = 1, 2
_ENCODING = "utf-8"
"""Of a stream that was closed when the process began: then Python has not chosen one."""


class _Words(io.FileIO):
    """Standard error: what it doesn't take is dropped, and the next line is tried anew (a disk may have room again)."""

    def write(self, data: object, /) -> int:
        size_bytes = memoryview(data).nbytes  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            written = super().write(data)  # type: ignore[arg-type]
            return size_bytes if written is None else written
        return size_bytes


class _Output(io.FileIO):
    """Standard output: the first failure is raised, and whatever comes after it is dropped.

    So that nothing fails a second time where buffers are flushed at the end.
    """

    _has_failed = False

    def write(self, data: object, /) -> int:
        size_bytes = memoryview(data).nbytes  # type: ignore[arg-type]
        if self._has_failed:
            return size_bytes
        try:
            written = super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            self._has_failed = True
            if error.errno == errno.EPIPE:  # the reader has what it wanted: no error to speak of
                raise
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise OutputError(f"cannot write standard output: {why}") from None
        if written is None:
            self._has_failed = True
            raise OutputError("cannot write standard output: its reader is too slow, and it does not wait (O_NONBLOCK)")
        return written


def guard_streams() -> None:
    """Puts streams in the place of `sys.stdout` and `sys.stderr` that fail as this module says.

    Writing to standard output then raises OutputError, or BrokenPipeError where nobody reads it any more; writing to
    standard error raises nothing. A descriptor that was closed when the process began gets one that fails like it:
    otherwise the next file that is opened would take its number, and be written what was meant for the terminal.
    """
    for descriptor, flags in ((0, os.O_WRONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # the system gives the lowest number that is free: this one
    sys.stdout = _stream(_Output(_STDOUT, "w", closefd=False), sys.stdout, "strict")
    sys.stderr = _stream(_Words(_STDERR, "w", closefd=False), sys.stderr, "backslashreplace")


def _stream(raw: io.FileIO, before: TextIO | None, errors: str) -> TextIO:
    """A text stream that behaves as the one before, where there was one."""
    buffer = io.BufferedWriter(raw)
    if not isinstance(before, io.TextIOWrapper):
        return io.TextIOWrapper(buffer, _ENCODING, errors)
    lines, at_once = bool(before.line_buffering), bool(before.write_through)
    return io.TextIOWrapper(buffer, before.encoding, before.errors, line_buffering=lines, write_through=at_once)
