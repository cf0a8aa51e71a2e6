"""Signals as bytes in a pipe, so that one `poll` waits for them and for everything else; and who sent them.

A key of a terminal (Ctrl-C) sends its signal to every process of the group in the foreground: the server has it
already, and must not get it a second time from us. What is sent to us alone only we can pass on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

_KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
_TO_GROUP = 0x80
"""Added to a signal's number, which is below it, where the whole group got the signal."""
_SI_KERNEL = 0x80
"""Linux's `si_code` of a signal that no process sent."""


@dataclass(frozen=True, slots=True)
class Caught:
    """A signal that came. `is_for_group` says that every process of our group got it, from the terminal."""

    number: int
    is_for_group: bool = False


class Signals:
    """Catches signals from now on, SIGCHLD among them. One that is ignored stays ignored, here and in every child."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.descriptor, self._written = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._written, False)
        signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        # Never ignored, or the system would keep the child's exit code to itself.
        signal.signal(signal.SIGCHLD, _note)
        self._numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        self._guesses = False
        for number in self._numbers:
            signal.signal(number, _note)

    def tell_senders(self) -> None:
        """Tell from now on which signals went to the whole group. After the last child was started, to be called once.

        For that the signals are blocked, which a child would inherit, and a thread waits for them. Where the system
        has no such call (macOS), or no thread to spare, a key's signal counts as the terminal's while our group is in
        its foreground.
        """
        self._guesses = not hasattr(signal, "sigwaitinfo")
        if self._guesses:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, self._numbers)
        try:
            threading.Thread(target=self._wait, name="signals", daemon=True).start()
        except RuntimeError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._numbers)
            self._guesses = True

    def _wait(self) -> None:
        while True:
            told = signal.sigwaitinfo(self._numbers)
            is_for_group = told.si_code == _SI_KERNEL and not _is_hang_up_of_leader(told.si_signo)
            with contextlib.suppress(BlockingIOError):  # thousands wait to be taken
                os.write(self._written, bytes([told.si_signo | (_TO_GROUP if is_for_group else 0)]))

    def take(self) -> list[Caught]:
        """The signals that came since the last call."""
        try:
            found = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return []
        return [self._caught(byte) for byte in found]

    def _caught(self, byte: int) -> Caught:
        number = byte & ~_TO_GROUP
        return Caught(number, bool(byte & _TO_GROUP) or (self._guesses and number in _KEYS and _is_in_foreground()))

    def close(self) -> None:
        """Stop noting signals; their handlers stay. Not after `tell_senders`."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._written)


def _note(number: int, frame: FrameType | None) -> None:
    """The signal is in the pipe; this is only here because Python writes it there for signals with a handler alone."""


def _is_hang_up_of_leader(number: int) -> bool:
    """Of a terminal that is gone the kernel tells the leader of its session alone."""
    return number == signal.SIGHUP and os.getsid(0) == os.getpid()


def _is_in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
