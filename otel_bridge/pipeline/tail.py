"""Follows logs and delivers what they say until stopped.

Looking (opening new files) has a thread of its own and never waits for delivery; reading and mapping stop while the
batches in the air are as many as they may be. The mark of a file moves only when the backend has acknowledged.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from otel_bridge.export.batches import Batch
from otel_bridge.export.delivery import Delivery
from otel_bridge.export.encode import SpanEncoder
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.dap_traces import DapTraces
from otel_bridge.pipeline.mapping_stage import Cut, MappedLog, MappingStage
from otel_bridge.pipeline.marks import Committer, Mark
from otel_bridge.pipeline.servers import LogWriters, Writers
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import Json
from otel_bridge.sessions.span import Span
from otel_bridge.sources import ChainStatistics, Checkpoint, Follower, Notice, NoticeKind
from otel_bridge.sources.processes import Holders
from otel_bridge.state.commit import Commit, Counts, RunStatus

READ_BYTES = 1 << 20
CHECK_EVERY_S = 5.0
"""How often what no byte announces is looked at: silence, ended servers, files found but not read."""
NOTE_EVERY_S = 1.0
"""How often what is known without the backend is written down: files, sizes, losses, what delivery waits for."""
GRACE_MS = 5_000
"""Beyond the idle timeout, so that an entry that was stamped in time and written late still comes first."""


@dataclass(slots=True)
class Tail:
    """A running tail. `run` returns when `stop` is set; what is in the air then is the delivery's to finish."""

    follower: Follower
    stage: MappingStage
    delivery: Delivery
    committer: Committer
    announcer: Announcer
    idle_timeout_ms: int
    holders: Holders = field(default_factory=Holders)
    traces: DapTraces = field(default_factory=DapTraces)
    unix_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    wake: threading.Event = field(default_factory=threading.Event)
    """Set when there may be something to read, and to be heard at once after `stop` was set."""
    found_none: bool = False
    """Whether it was said that there is no log yet: then the first one is news."""
    writers: dict[str, LogWriters] = field(default_factory=dict)
    _encoder: SpanEncoder = field(default_factory=SpanEncoder)
    _read_ms: dict[str, int] = field(default_factory=dict)
    _lost_bytes: Counter[str] = field(default_factory=Counter)
    _flaws: Counter[str] = field(default_factory=Counter)
    _unsaved: dict[str, Checkpoint] = field(default_factory=dict)
    _gone: dict[str, None] = field(default_factory=dict)
    _forgotten: set[str] = field(default_factory=set)
    _checked_s: float = 0.0
    _noted_s: float = 0.0

    def run(self, stop: threading.Event) -> None:
        """Reads, maps and submits until `stop` is set."""
        while not stop.is_set():
            self._say()
            self._look_after()
            if self.delivery.wait_for_room(NOTE_EVERY_S) and not self._read():
                self.wake.wait(NOTE_EVERY_S if self.delivery.statistics().in_flight_batches else CHECK_EVERY_S)
                self.wake.clear()
        self._say()
        self._note()

    def _look_after(self) -> None:
        now_s = self.monotonic_s()
        if now_s - self._noted_s >= NOTE_EVERY_S:
            self._noted_s = now_s
            self._note()
        if now_s - self._checked_s >= CHECK_EVERY_S and self.delivery.has_room():
            self._checked_s = now_s
            self.check()

    def _read(self) -> bool:
        """Reads and submits once; False when there was nothing to read."""
        chunks = self.follower.read(READ_BYTES)
        if not chunks:
            return False
        if not all(self.committer.knows(chunk.generation) for chunk in chunks):
            self._note()  # a file that is rotated out while the backend is away is missed only if it was written down
        spans: list[Span] = []
        now_ms = self._now_ms()
        if self.found_none:
            self.found_none = False
            self.announcer.once(f"found {chunks[0].path}")
        for chunk in chunks:
            spans += self.stage.take(chunk)
            self._read_ms[chunk.chain] = now_ms
        self._submit(spans)
        return True

    def _note(self) -> None:
        """Writes down what is known without the backend's word."""
        self._gather()
        points, self._unsaved = self._unsaved, {}
        self.committer.note(points.values(), self._take_lost_bytes(), self._run_status())

    def _gather(self) -> None:
        self._unsaved |= {point.generation: point for point in self.follower.unsaved()}
        self._gone |= dict.fromkeys(self.follower.gone())

    def _take_lost_bytes(self) -> Counter[str]:
        lost_bytes, self._lost_bytes = self._lost_bytes, Counter()
        return lost_bytes

    def _submit(self, spans: Iterable[Span]) -> None:
        cut = self.stage.cut()
        encoded = tuple(self._encoder.encode(span) for span in spans)
        self.delivery.submit(Batch(encoded, Mark(self._commit_of(cut), cut.ended)))

    def _commit_of(self, cut: Cut) -> Commit:
        self._gather()
        if self._unsaved.keys() - cut.offsets.keys():
            self._note()  # what was seen of files is not to wait for the backend
        self._unsaved.clear()
        checkpoints: dict[str, Json | None] = {}
        for generation, offset_bytes in cut.offsets.items():
            ended = generation in cut.ended
            point = self.follower.checkpoint(generation, offset_bytes, cut.last_entry_ms[generation], ended=ended)
            checkpoints[generation] = point.to_json()
        checkpoints |= self._gone
        self._gone = {}
        flaws = self.stage.flaws - self._flaws
        self._flaws = Counter(self.stage.flaws)
        forgotten, self._forgotten = frozenset(self._forgotten), set()
        for chain, changes in cut.logs.items():
            if chain in self.writers:
                changes.log["writers"] = self.writers[chain].to_json()
        counts = Counts(lost_bytes=self._take_lost_bytes(), malformed_lines=flaws)
        return Commit(checkpoints, cut.logs, forgotten, counts, run=self._run_status())

    def _run_status(self) -> RunStatus:
        now = self.follower.statistics()
        return RunStatus(self._now_ms(), "", held_files=now.held_files, held_bytes=now.held_bytes)

    def check(self) -> None:
        """What only time tells: servers that ended, logs that fell silent, files that were found and not yet read."""
        followed = {chain.chain: chain for chain in self.follower.statistics().chains}
        spans: list[Span] = []
        self._look_for_writers(followed)
        for chain, log in self._logs_now():
            on_disk = followed.get(chain)
            if log.mapping.has_open and (on_disk is None or not on_disk.lag_bytes):
                ended = self._ended(chain, log.mapping, on_disk is not None)
                spans += ended
                log.changed = log.changed or bool(ended)
        spans += self._check_traces(followed)
        self._forget_chains(followed)
        self._gather()
        is_changed = any(log.changed for log in self.stage.logs.values())
        if spans or self._unsaved or self._gone or self._forgotten or is_changed:
            self._submit(spans)

    def _logs_now(self) -> list[tuple[str, MappedLog]]:
        """The logs, without those of an earlier run that are not asked for now: they are left as they were."""
        waiting = self.follower.waiting()
        return [(chain, log) for chain, log in self.stage.logs.items() if chain not in waiting]

    def _check_traces(self, followed: Mapping[str, ChainStatistics]) -> list[Span]:
        """Looks for DAP traces of the sessions, and gives what is final because no more of one will come."""
        behind = [chain.path for chain in followed.values() if chain.lag_bytes]
        spans: list[Span] = []
        for chain, log in self._logs_now():
            paths = [followed[chain].path] if chain in followed else []
            final = self.traces.check(log.mapping, paths, behind)
            spans += final
            log.changed = log.changed or bool(final)
        return spans

    def _forget_chains(self, followed: Mapping[str, ChainStatistics]) -> None:
        """Drops the logs of which no file and nothing open is left, once nothing can go on from them any more."""
        over = [
            chain
            for chain, log in self.stage.logs.items()
            if chain not in followed
            and not log.mapping.has_open
            and not log.mapping.dap
            and self._quiet_ms(chain, log.mapping) >= self.idle_timeout_ms
            and not self.committer.has_file(chain)
        ]
        for chain in over:
            del self.stage.logs[chain]
            self.writers.pop(chain, None)
            self._read_ms.pop(chain, None)
        self._forgotten.update(over)

    def _look_for_writers(self, followed: Mapping[str, ChainStatistics]) -> None:
        """Looks who writes the logs with open sessions of which nobody alive is known to."""
        unknown = {
            chain: followed[chain].files
            for chain, log in self.stage.logs.items()
            if log.mapping.sessions and chain in followed and not self._writers_of(chain).seen
        }
        for chain, files in unknown.items():
            if self._writers_of(chain).saw(one for key in files for one in self.holders.holders(key) or ()):
                self.stage.logs[chain].changed = True

    def _ended(self, chain: str, mapping: LogMapping, is_followed: bool) -> list[Span]:
        if is_followed and self._writers_of(chain).state() is Writers.ENDED:
            return mapping.server_gone()
        return mapping.server_gone() if self._quiet_ms(chain, mapping) >= self.idle_timeout_ms else []

    def _quiet_ms(self, chain: str, mapping: LogMapping) -> int:
        now_ms = self._now_ms()
        latest_ms = mapping.latest_ms if mapping.latest_ms <= now_ms else 0  # a clock that was ahead holds up nothing
        return now_ms - GRACE_MS - max(latest_ms, self._read_ms.get(chain, 0))

    def _writers_of(self, chain: str) -> LogWriters:
        return self.writers.setdefault(chain, LogWriters())

    def _now_ms(self) -> int:
        return int(self.unix_s() * 1000)

    def _say(self) -> None:
        for notice in self.follower.notices():
            if notice.is_loss:
                self._lost_bytes[notice.kind] += notice.lost_bytes
            text = f"warning: {notice.text}" if notice.is_loss else notice.text
            if notice.kind is NoticeKind.GAP:
                # Each hole by itself: the file, the offset and the times are what a person needs.
                self.announcer.once(f"{text}; {self._around(notice)}")
            else:
                self.announcer.repeated(f"{notice.kind} {notice.path}", text)
        self.announcer.flush()

    def _around(self, gap: Notice) -> str:
        before_ms = gap.before_ms
        if before_ms is None and (log := self.stage.logs.get(gap.chain)):
            before_ms = log.mapping.latest_ms or None  # nothing of this file was read: the last entry of those before
        before = "the beginning" if before_ms is None else _time(before_ms)
        after = "what is written next" if gap.after_ms is None else _time(gap.after_ms)
        return f"entries are missing between {before} and {after}"


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
