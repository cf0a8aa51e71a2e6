"""The mark of a batch: what may be written down once the backend has acknowledged it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from otel_bridge.errors import StateError
from otel_bridge.export.delivery import Delivery, Statistics
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.sessions.saved import Json
from otel_bridge.sources import Checkpoint
from otel_bridge.state.commit import Commit, Counts, LastError, RunStatus
from otel_bridge.state.store import StateStore


@dataclass(frozen=True, slots=True)
class Mark:
    """What a batch accounts for, and the generations whose end is in it."""

    commit: Commit
    ended: tuple[str, ...]


_DELIVERED = ("offset_bytes", "seam_hash", "last_entry_ms", "ended")
"""What of a checkpoint is the backend's word; the rest is what was seen of the file."""


class Committer:
    """Writes marks down, in order, and between them what is known without the backend. Safe to use from threads.

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
        self._known: dict[str, Json] = {}
        self._shown = RunStatus(0, "")
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

    def restore(self, checkpoints: Mapping[str, Json]) -> None:
        """Begin with what the state holds, by generation."""
        self._known = dict(checkpoints)

    def knows(self, generation: str) -> bool:
        """Whether the file was ever written down."""
        return generation in self._known

    def has_file(self, chain: str) -> bool:
        """Whether a file of this log is written down."""
        with self._lock:
            return any(values["chain"] == chain for values in self._known.values())

    def note(self, points: Iterable[Checkpoint], lost_bytes: Counter[str], run: RunStatus) -> None:
        """Commits what was seen of files, bytes that are lost, and how the run is, unless all of that is known.

        Of a file that is known already the offset stays where it is: what was handed over is not delivered.
        """
        with self._lock:
            checkpoints: dict[str, Json | None] = {}
            for point in points:
                values = point.to_json()
                known = self._known.get(point.generation, values)
                checkpoints[point.generation] = values | {name: known[name] for name in _DELIVERED}
            now = self.delivery.statistics() if self.delivery else Statistics()
            shown = replace(run, time_ms=0, endpoint=self.endpoint, waiting_for=now.trouble)
            if checkpoints or lost_bytes or shown != self._shown or now.last_error != self._error or self._unwritten:
                self._write(Commit(checkpoints, counts=Counts(lost_bytes=lost_bytes), run=run), now)

    def write(self, commit: Commit, ended: tuple[str, ...] = ()) -> bool:
        """Commits, together with what could not be committed before; False when it could not be written now either."""
        with self._lock:
            self._waiting += ended
            now = self.delivery.statistics() if self.delivery else Statistics()
            if not self._write(self._with_counts(commit, now), now):
                return False
            for generation in self._waiting:
                self._release(generation)
            self._waiting.clear()
            return True

    def _write(self, commit: Commit, now: Statistics) -> bool:
        whole = self._with_status(commit, now)
        for generation, values in commit.checkpoints.items():
            if values is None:
                self._known.pop(generation, None)
            else:
                self._known[generation] = values
        if self._unwritten is not None:
            whole = self._unwritten.merged_with(whole)
        self._unwritten = None
        if self._store is None:
            return True
        try:
            self._store.commit(whole)
        except StateError as error:
            self._unwritten = whole
            text = f"{error}; delivery goes on, but after a crash this would be sent again"
            self._announcer.repeated("state", text)
            return False
        return True

    def _with_counts(self, commit: Commit, now: Statistics) -> Commit:
        before, self._counted = self._counted, now
        counts = Counts(
            now.delivered_spans - before.delivered_spans,
            now.refused_spans - before.refused_spans,
            lost_spans=now.lost_spans - before.lost_spans,
        )
        return replace(commit, counts=commit.counts.plus(counts))

    def _with_status(self, commit: Commit, now: Statistics) -> Commit:
        now_ms = int(self._unix_s() * 1000)
        said = LastError(now_ms, now.last_error) if now.last_error != self._error else None
        run = replace(commit.run or RunStatus(now_ms, ""), endpoint=self.endpoint, waiting_for=now.trouble)
        self._error, self._shown = now.last_error, replace(run, time_ms=0)
        return replace(commit, last_error=said, run=run)
