"""Signals as bytes in a pipe, so that one `poll` waits for them and for everything else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from types import FrameType


class Signals:
    """Catches signals from now on, SIGCHLD among them. One that is ignored stays ignored, here and in every child."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.descriptor, self._written = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._written, False)
        signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        # Never ignored, or the system would keep the child's exit code to itself.
        signal.signal(signal.SIGCHLD, _note)
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _note)

    def take(self) -> bytes:
        """The numbers of the signals that came since the last call, a byte each."""
        try:
            return os.read(self.descriptor, 4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Stop noting signals; their handlers stay."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._written)


def _note(number: int, frame: FrameType | None) -> None:
    """The signal is in the pipe; this is only here because Python writes it there for signals with a handler alone."""
