"""Follows logs and delivers what they say until stopped.

Looking (opening new files) has a thread of its own and never waits for delivery; reading and mapping stop while the
batches in the air are as many as they may be. The mark of a file moves only when the backend has acknowledged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from otel_bridge.errors import StateError
from otel_bridge.export.delivery import Batch, Delivery
from otel_bridge.export.encode import SpanEncoder
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.mapping_stage import Cut, MappingStage
from otel_bridge.pipeline.servers import LogWriters, Writers
from otel_bridge.sessions.span import Span
from otel_bridge.sources import Follower, Notice
from otel_bridge.sources.processes import holders, is_alive
from otel_bridge.state.commit import Commit
from otel_bridge.state.store import StateStore

READ_BYTES = 1 << 20
BATCH_SPANS = 512
CHECK_EVERY_S = 5.0
"""How often what no byte announces is looked at: silence, ended servers, files found but not read."""
GRACE_MS = 5_000
"""Beyond the idle timeout, so that an entry that was stamped in time and written late still comes first."""


@dataclass(slots=True)
class Tail:
    """A running tail. `run` returns when `stop` is set and what was in the air is delivered or given up."""

    follower: Follower
    stage: MappingStage
    delivery: Delivery
    store: StateStore | None
    announcer: Announcer
    idle_timeout_ms: int
    unix_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    wake: threading.Event = field(default_factory=threading.Event)
    _encoder: SpanEncoder = field(default_factory=SpanEncoder)
    _writers: dict[str, LogWriters] = field(default_factory=dict)
    _read_at_s: dict[str, float] = field(default_factory=dict)
    _uncommitted: Commit | None = None
    _checked_s: float = 0.0

    def run(self, stop: threading.Event) -> None:
        """Reads, maps and submits until `stop` is set. Set `wake` as well to be heard at once."""
        while not stop.is_set():
            self._say()
            if self.monotonic_s() - self._checked_s >= CHECK_EVERY_S:
                self._check()
            if not self._step(stop):
                self.wake.wait(CHECK_EVERY_S)
                self.wake.clear()
        self._say()

    def _step(self, stop: threading.Event) -> bool:
        """Reads once; False when there was nothing to read, so that the caller waits."""
        if not self.delivery.wait_for_room(timeout_s=CHECK_EVERY_S) or stop.is_set():
            return True
        chunks = self.follower.read(READ_BYTES)
        spans: list[Span] = []
        for chunk in chunks:
            spans += self.stage.take(chunk)
            self._read_at_s[chunk.chain] = self.unix_s()
        if chunks:
            self._submit(spans)
        return bool(chunks)

    def _submit(self, spans: Iterable[Span]) -> None:
        cut = self.stage.cut()
        encoded = tuple(self._encoder.encode(span) for span in spans)
        self.delivery.submit(Batch(encoded, (self._commit_of(cut), cut.ended)))

    def _commit_of(self, cut: Cut) -> Commit:
        checkpoints: dict[str, dict[str, object] | None] = {
            point.generation: point.to_json()
            for point in self.follower.unsaved()
            if point.generation not in cut.offsets
        }
        for generation, offset_bytes in cut.offsets.items():
            ended = generation in cut.ended
            point = self.follower.checkpoint(generation, offset_bytes, cut.last_entry_ms[generation], ended=ended)
            checkpoints[generation] = point.to_json()
        for generation in self.follower.gone():
            checkpoints[generation] = None
        return Commit(checkpoints, dict(cut.logs))

    def commit(self, mark: object) -> None:
        """What a delivered batch accounts for is written down. Called by the delivery, in order."""
        assert isinstance(mark, tuple)
        commit, ended = mark
        if self.store is not None:
            whole = self._uncommitted.merged_with(commit) if self._uncommitted else commit
            try:
                self.store.commit(whole)
            except StateError as error:
                self._uncommitted = whole
                self.announcer.repeated("state", f"{error} (nothing is lost: after a crash it would be sent again)")
                return
            self._uncommitted = None
        for generation in ended:
            self.follower.release(generation)

    def _check(self) -> None:
        """What only time tells: servers that ended, logs that fell silent."""
        self._checked_s = self.monotonic_s()
        now_ms = int(self.unix_s() * 1000)
        behind = {chain.chain: chain for chain in self.follower.statistics().chains}
        spans: list[Span] = []
        for chain, log in self.stage.logs.items():
            followed = behind.get(chain)
            if followed is not None and followed.lag_bytes:
                continue
            mapping = log.mapping
            read_ms = int(self._read_at_s.get(chain, 0.0) * 1000)
            ended = False
            if followed is not None and mapping.sessions:
                writers = self._writers.setdefault(chain, LogWriters())
                ended = writers.check(followed.files, holders, is_alive) is Writers.ENDED
            if ended:
                spans += mapping.server_gone()
                log.changed = True
            elif now_ms - GRACE_MS - max(mapping.latest_ms, read_ms) >= self.idle_timeout_ms:
                given_up = mapping.pass_time(now_ms)
                spans += given_up
                log.changed = log.changed or bool(given_up)
        if spans or self.follower.unsaved():
            self._submit(spans)

    def _say(self) -> None:
        for notice in self.follower.notices():
            self.announcer.repeated(f"{notice.kind} {notice.path}", _line(notice))
        self.announcer.flush()


def _line(notice: Notice) -> str:
    return f"warning: {notice.text}" if notice.is_loss else notice.text
