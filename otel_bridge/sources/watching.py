"""When to look: woken by the system when a log grows, and now and then in any case.

Waking is a hint, never the truth: a look finds out what happened. So a file system that reports nothing, or a system
that is out of watches, costs delay and no entries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

# The rust backend is documented for direct use; only through it can the step change without a gap in the watching.
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from otel_bridge.sources.follower import Follower
from otel_bridge.sources.notices import Notice, NoticeKind

_GATHER_MS = 50
"""How long changes that keep coming are gathered at most before a look."""
_FOLDERS_S = 0.5
"""How often it is asked whether the folders are still the same."""
_AGAIN_S = 60.0
"""How often watching is tried again where the system had no watches left."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look. Times are milliseconds, `quiet_after_s` seconds.

    A change is seen after at most two steps. `busy_step_ms` is the step while entries come, `blocked_step_ms` while
    nobody reads them, `quiet_step_ms` after `quiet_after_s` without any: measured on one idle log, 40 ms cost 0.08 % of
    a core and 5 ms 0.4 %. `sweep_ms` is the longest time between two looks, `*poll_ms` that time where the system
    reports nothing.
    """

    busy_step_ms: int = 5
    blocked_step_ms: int = 10
    quiet_step_ms: int = 40
    quiet_after_s: float = 60.0
    sweep_ms: int = 1_000
    poll_ms: int = 50
    quiet_poll_ms: int = 90


class Watcher:
    """Calls `follower.look` whenever something may have changed, and `on_ready` when there is something to read.

    `on_ready` must return at once: it is called by the thread that looks.
    """

    def __init__(
        self,
        follower: Follower,
        on_ready: Callable[[], None],
        pace: Pace | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._follower = follower
        self._on_ready = on_ready
        self._pace = pace or Pace()
        self._monotonic_s = monotonic_s
        self._active_s = monotonic_s()
        self._blocked = False
        self._said: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Look until `stop` is set. Meant to be a thread's target.

        Raises KeyboardInterrupt when it runs in the main thread and that is what the signal does.
        """
        self._look()
        while not stop.is_set():
            folders = self._follower.folders()
            try:
                notify = self._open([folder for folder, _, _ in folders])
            except FileNotFoundError:
                self._look()  # a folder has gone meanwhile
                continue
            except (OSError, WatchfilesRustInternalError) as error:
                self._say_limit(str(error))
                self._poll(stop)
                continue
            try:
                self._watch(notify, folders, stop)
            finally:
                notify.close()

    def _open(self, folders: list[str]) -> RustNotify:
        # Not by recursion: the servers' session folders lie below. No filter: the default one would hide all that lies
        # below `node_modules`, and the server's own default folder does.
        return RustNotify(folders, False, False, 300, False, False)

    def _watch(self, notify: RustNotify, folders: frozenset[tuple[str, int, int]], stop: threading.Event) -> None:
        self._look()  # what happened before the watch began wakes nobody
        checked_s = self._monotonic_s()
        while not stop.is_set():
            changes = notify.watch(_GATHER_MS, self._step_ms(), self._pace.sweep_ms, stop)
            if changes == "signal":
                raise KeyboardInterrupt
            self._look([path for _, path in changes] if isinstance(changes, set) else None)
            if self._monotonic_s() - checked_s >= _FOLDERS_S:
                checked_s = self._monotonic_s()
                if self._follower.folders() != folders:
                    return

    def _poll(self, stop: threading.Event) -> None:
        """Look without being woken, for a while."""
        end_s = self._monotonic_s() + _AGAIN_S
        while not stop.wait(self._poll_s()) and self._monotonic_s() < end_s:
            self._look()

    def _quiet(self) -> bool:
        return self._monotonic_s() - self._active_s >= self._pace.quiet_after_s

    def _step_ms(self) -> int:
        if self._blocked:
            return self._pace.blocked_step_ms
        return self._pace.quiet_step_ms if self._quiet() else self._pace.busy_step_ms

    def _poll_s(self) -> float:
        return (self._pace.quiet_poll_ms if self._quiet() else self._pace.poll_ms) / 1000

    def _look(self, changed: Collection[str] | None = None) -> None:
        self._blocked = self._follower.ready
        if self._follower.look(changed):
            if not self._blocked:
                self._active_s = self._monotonic_s()
            self._on_ready()

    def _say_limit(self, error: str) -> None:
        """Say once which limit is reached."""
        limit = "fs.inotify.max_user_instances" if "open files" in error else "fs.inotify.max_user_watches"
        if limit not in self._said:
            self._said.add(limit)
            text = (
                f"the system does not watch folders for us ({error}); looking every {self._pace.poll_ms} ms instead; "
                f"to watch, raise `sysctl {limit}`"
            )
            self._follower.note(Notice(NoticeKind.WATCH_LIMIT, "", text))
