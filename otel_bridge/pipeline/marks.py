"""The mark of a batch: what may be written down once the backend has acknowledged it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from otel_bridge.errors import StateError
from otel_bridge.export.delivery import Delivery, Statistics
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.state.commit import Commit, Counts, LastError, RunStatus
from otel_bridge.state.store import StateStore


@dataclass(frozen=True, slots=True)
class Mark:
    """What a batch accounts for, and the generations whose end is in it."""

    commit: Commit
    ended: tuple[str, ...]


class Committer:
    """Writes marks down, in order; called by the delivery's thread.

    A commit that fails is kept and merged into the next: all that it costs is that after a crash the same spans are
    sent again, so delivery goes on.
    """

    def __init__(
        self,
        store: StateStore | None,
        release: Callable[[str], None],
        announcer: Announcer,
        unix_s: Callable[[], float],
    ) -> None:
        self._store = store
        self._release = release
        self._announcer = announcer
        self._unix_s = unix_s
        self._unwritten: Commit | None = None
        self._waiting: list[str] = []
        self._counted = Statistics()
        self._error = ""
        self._lock = threading.Lock()
        self.delivery: Delivery | None = None
        self.endpoint = ""

    def __call__(self, mark: object) -> None:
        """Commits a delivered batch, and lets go of the files whose end it holds."""
        if not isinstance(mark, Mark):
            raise TypeError(f"no mark: {type(mark).__name__}")
        self.write(mark.commit, mark.ended)

    def write(self, commit: Commit, ended: tuple[str, ...] = ()) -> bool:
        """Commits, together with what could not be committed before; False when it could not be written now either."""
        with self._lock:
            self._waiting += ended
            if self._store is not None and not self._write(self._store, commit):
                return False
            for generation in self._waiting:
                self._release(generation)
            self._waiting.clear()
            return True

    def _write(self, store: StateStore, commit: Commit) -> bool:
        now = self.delivery.statistics() if self.delivery else Statistics()
        whole = self._with_counts(commit, now)
        if self._unwritten is not None:
            whole = self._unwritten.merged_with(whole)
        try:
            store.commit(whole)
        except StateError as error:
            self._unwritten = whole
            text = f"{error}; delivery goes on, but after a crash this would be sent again"
            self._announcer.repeated("state", text)
            return False
        self._unwritten = None
        return True

    def _with_counts(self, commit: Commit, now: Statistics) -> Commit:
        counts = Counts(
            now.delivered_spans - self._counted.delivered_spans, now.refused_spans - self._counted.refused_spans
        )
        now_ms = int(self._unix_s() * 1000)
        said = LastError(now_ms, now.last_error) if now.last_error != self._error else None
        self._counted, self._error = now, now.last_error
        run = commit.run or RunStatus(now_ms, self.endpoint)
        return replace(
            commit,
            counts=commit.counts.plus(counts),
            last_error=said,
            run=replace(run, endpoint=self.endpoint, waiting_for=now.trouble),
        )
