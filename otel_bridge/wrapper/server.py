"""The server as the worker knows it: another process's child, with a process id and no more."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

from otel_bridge.sources.processes import PROC, running

TERM_AFTER_S, KILL_AFTER_S = 1.5, 3.0
"""How long a server whose wrapper is gone has to end by itself, and then to heed SIGTERM."""


class Server:
    """The process `pid`, which the process `parent`, ours as well, has started."""

    def __init__(self, pid: int, parent: int) -> None:
        self._pid = pid
        self._parent = parent
        self._seen = running(pid)

    def has_ended(self) -> bool:
        """Whether it has ended; also if nobody has reaped it, where the system tells of that."""
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return Path(PROC).is_dir() and (self._seen is None or running(self._pid) != self._seen)

    def end_if_abandoned(self, over: threading.Event) -> None:
        """Where the wrapper is gone, end a server that heeds neither the end of its input nor SIGTERM, unless `over`.

        A client that kills what it started (MCP specification, "Lifecycle", shutdown of stdio) meant the server.
        """
        for number, wait_s in ((signal.SIGTERM, TERM_AFTER_S), (signal.SIGKILL, KILL_AFTER_S - TERM_AFTER_S)):
            if over.wait(wait_s) or os.getppid() == self._parent or self.has_ended():
                return
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended just now, or is another user's
                os.kill(self._pid, number)
