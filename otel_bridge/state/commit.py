"""What one transaction changes, as a value: it can be kept and merged while the disk is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from otel_bridge.sessions.ids import WINDOW_MS
from otel_bridge.sessions.saved import Json, MappingChanges


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted since the last commit.

    `lost_bytes` is by the kind of the notice that told of the loss (0 where nobody saw how much it was),
    `malformed_lines` by the flaw. `lost_spans` are
    refused ones for which there was no room among the dead letters.
    """

    delivered_spans: int = 0
    refused_spans: int = 0
    lost_bytes: Mapping[str, int] = field(default_factory=dict)
    malformed_lines: Mapping[str, int] = field(default_factory=dict)
    lost_spans: int = 0

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            self.delivered_spans + other.delivered_spans,
            self.refused_spans + other.refused_spans,
            _sum(self.lost_bytes, other.lost_bytes),
            _sum(self.malformed_lines, other.malformed_lines),
            self.lost_spans + other.lost_spans,
        )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Both together, a 0 too."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


@dataclass(frozen=True, slots=True)
class LastError:
    """The last thing that went wrong: one line without headers and user info, and its Unix time."""

    time_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What only the running bridge knows, as of `time_ms` (Unix): for `status`, of no use after a restart.

    `endpoint` is without user info. `waiting_for` is what delivery waits for now, empty when it goes on. `held_*`
    counts files that have no name any more and are kept open until read.
    """

    time_ms: int
    endpoint: str
    waiting_for: str = ""
    held_files: int = 0
    held_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that one transaction changes; what is left out stays as it is.

    `checkpoints` are by generation (None: forget it), `logs` by chain. `forgotten_chains` are dropped with all that
    belongs to them, before the rest is written.
    """

    checkpoints: Mapping[str, Json | None] = field(default_factory=dict)
    logs: Mapping[str, MappingChanges] = field(default_factory=dict)
    forgotten_chains: frozenset[str] = frozenset()
    counts: Counts = Counts()
    last_error: LastError | None = None
    run: RunStatus | None = None

    def merged_with(self, later: Commit) -> Commit:
        """One commit with the effect of this one and then `later`; it grows with what they hold, not with how many."""
        gone = later.forgotten_chains
        checkpoints = {
            generation: values
            for generation, values in self.checkpoints.items()
            if values is None or values["chain"] not in gone
        }
        logs = {chain: changes for chain, changes in self.logs.items() if chain not in gone}
        for chain, changes in later.logs.items():
            logs[chain] = _merged(logs[chain], changes) if chain in logs else changes
        return Commit(
            checkpoints | dict(later.checkpoints),
            logs,
            self.forgotten_chains | gone,
            self.counts.plus(later.counts),
            later.last_error or self.last_error,
            later.run or self.run,
        )


def _merged(earlier: MappingChanges, later: MappingChanges) -> MappingChanges:
    kept = {one[0]: one for one in earlier.occurrences}
    if later.occurrences:
        span = LogTimes.of(later.occurrences)
        kept = {digest: one for digest, one in kept.items() if span.is_near(one[1])}
        kept |= {one[0]: one for one in later.occurrences}
    # A session that changed again goes to the end: the order is the order in which sessions ended.
    sessions = {session: value for session, value in earlier.sessions.items() if session not in later.sessions}
    return replace(later, sessions=sessions | dict(later.sessions), occurrences=tuple(kept.values()))


class LogTimes(NamedTuple):
    """The oldest and the newest log time of some entry counts, Unix ms.

    Counts far from the last ones do not matter any more. Far from them, and not far from the newest time ever seen: a
    clock can jump back.
    """

    oldest_ms: int
    newest_ms: int

    @classmethod
    def of(cls, occurrences: Sequence[tuple[str, int, int]]) -> LogTimes:
        """The times of these counts; there must be one."""
        times = [time_ms for _, time_ms, _ in occurrences]
        return cls(min(times), max(times))

    def is_near(self, time_ms: int) -> bool:
        """Whether a count of that time can still be asked for by the mapping."""
        return self.oldest_ms - WINDOW_MS <= time_ms <= self.newest_ms + WINDOW_MS
