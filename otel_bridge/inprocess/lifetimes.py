"""What happens to every bridge of a process when the process forks, and when it ends.

Registered when this is imported, which is early, so that the end comes late: exit handlers run in reverse order, and
what those of the host log is still taken.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import Protocol

EXIT_TIMEOUT_S = 5.0
"""How long the end of the program waits for what is still to be delivered, for all bridges together."""


class Mortal(Protocol):
    """A bridge as a process's end and its forks see it."""

    def begin_close(self, deadline_s: float) -> None:
        """Take nothing more, and be done by `deadline_s` of `time.monotonic`. Returns at once."""

    def end_close(self) -> None:
        """Wait until it is done."""

    def hold(self) -> None:
        """Let nobody change anything, until `release`."""

    def release(self) -> None:
        """Go on."""

    def renew(self) -> None:
        """This is the child now: what the parent has in hand is the parent's."""


_living: weakref.WeakSet[Mortal] = weakref.WeakSet()
_forking = threading.local()


def watch(bridge: Mortal) -> None:
    """Look after a bridge as long as there is one; a closed one can still be asked for something in a child."""
    _living.add(bridge)


def watch_multiprocessing() -> None:
    """Have a child of `multiprocessing` close its bridges too: it ends without running exit handlers."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, close_all, exitpriority=0)


def close_all() -> None:
    """Close every bridge, all within the same deadline."""
    bridges = list(_living)
    deadline_s = time.monotonic() + EXIT_TIMEOUT_S
    for bridge in bridges:
        bridge.begin_close(deadline_s)
    for bridge in bridges:
        bridge.end_close()


def _before_fork() -> None:
    _forking.held = list(_living)
    for bridge in _forking.held:
        bridge.hold()


def _after_fork_in_parent() -> None:
    for bridge in _forking.held:
        bridge.release()
    _forking.held = []


def _after_fork_in_child() -> None:
    for bridge in _forking.held:
        bridge.renew()
    _forking.held = []


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
