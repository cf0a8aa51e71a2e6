"""Following logs: opening what appears, reading it in order, saying what happened."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from otel_bridge.sources.chain import Chain
from otel_bridge.sources.chunk import ChainStatistics, Chunk, Statistics
from otel_bridge.sources.files import FileKey, Files, LocalFiles, NotRegularError, reason
from otel_bridge.sources.generation import ChangedError, Generation
from otel_bridge.sources.identity import Checkpoint
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.places import Folders, Place, Sighting, expand, sightings
from otel_bridge.sources.placing import place
from otel_bridge.sources.roster import Candidate, Roster

BLOCK_BYTES = 262_144
QUIET_S = 10.0
_EXPAND_S = 2.0


class Start(StrEnum):
    """Where a file that no checkpoint knows is begun."""

    AUTO = "auto"
    BEGINNING = "beginning"
    NOW = "now"


class Follower:
    """Follows the logs that paths, folders and globs mean. All methods may be called from any thread.

    `look` opens and notes, `read` gives out bytes; neither waits for the other's caller, so that looking goes on while
    nobody reads. `patterns` is a function where the places change over time (discovery.py).
    """

    def __init__(
        self,
        patterns: Sequence[str] | Callable[[], Sequence[str]],
        *,
        start: Start = Start.AUTO,
        files: Files | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        self._patterns = patterns if callable(patterns) else lambda: patterns
        self._start = start
        self._files = LocalFiles() if files is None else files
        self._monotonic_s = monotonic_s
        self._unix_s = unix_s
        self._lock = threading.Lock()
        self._folders = Folders(self._files)
        self._places: tuple[Place, ...] = ()
        self._expanded_s: float | None = None
        self._roster = Roster()
        self._turns: deque[Chain] = deque()
        self._notices: list[Notice] = []
        self._gone: list[str] = []
        self._unreadable: set[str] = set()
        self._to_restore: list[Checkpoint] = []

    def restore(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Go on where these say. To be called before the first look."""
        self._to_restore = list(checkpoints)

    def look(self) -> bool:
        """Open what is new, note names and sizes; whether there is something to read. Never waits for a reader."""
        with self._lock:
            now_s = self._monotonic_s()
            if self._expanded_s is None or now_s - self._expanded_s >= _EXPAND_S:
                self._places = expand(self._patterns())
                self._expanded_s = now_s
            found, _ = sightings(self._places, self._folders, self._files, now_s)
            self._note(found, now_s)
            return self._observe(now_s)

    def _note(self, found: Sequence[Sighting], now_s: float) -> None:
        candidates = [*self._roster.waiting.values()]
        named: set[FileKey] = set()
        for sighting in found:
            named.add(sighting.key)
            generation = self._roster.by_key.get(sighting.key)
            if generation is not None:
                generation.path = sighting.path
                generation.absent_since_s = None
            elif sighting.key in self._roster.waiting:
                self._roster.waiting[sighting.key].path = sighting.path
            elif sighting.key not in self._roster.ignored and (candidate := self._open(sighting)) is not None:
                candidates.append(candidate)
        for generation in self._roster.generations():
            if generation.key not in named and generation.absent_since_s is None:
                generation.absent_since_s = now_s
        for generation in place(self._roster, candidates, now_s):
            chain = self._roster.chains[generation.chain]
            if chain not in self._turns:
                self._turns.append(chain)

    def _open(self, sighting: Sighting) -> Candidate | None:
        try:
            handle = self._files.open(sighting.path)
        except FileNotFoundError:
            return None
        except NotRegularError:
            return None
        except OSError as error:
            if sighting.path not in self._unreadable:
                self._unreadable.add(sighting.path)
                text = f"cannot read {sighting.path}: {reason(error)}; looking again"
                self._notices.append(Notice(NoticeKind.UNREADABLE, sighting.path, text))
            return None
        self._unreadable.discard(sighting.path)
        stat = handle.stat()
        if stat.key in self._roster.by_key:
            handle.close()
            return None
        return Candidate(sighting.path, stat.key, handle, stat, sighting.own)

    def _observe(self, now_s: float) -> bool:
        readable = False
        for generation in list(self._roster.generations()):
            if generation.handle is None:
                continue
            try:
                generation.observe(now_s)
            except ChangedError:
                self._truncated(generation, now_s)
            readable = readable or generation.unread > 0 or self._end_is_due(generation, now_s)
        return readable

    def _truncated(self, generation: Generation, now_s: float) -> None:
        raise NotImplementedError

    def _end_is_due(self, generation: Generation, now_s: float) -> bool:
        return (
            not generation.end_given
            and generation.unread == 0
            and self._roster.chains[generation.chain].superseded(generation)
            and now_s - generation.grown_s >= QUIET_S
        )

    def read(self, max_bytes: int = 1_048_576) -> Sequence[Chunk]:
        """The next bytes, at most about `max_bytes` in all: of each chain in turn, of a chain the oldest first."""
        with self._lock:
            now_s = self._monotonic_s()
            chunks: list[Chunk] = []
            left = max_bytes
            for _ in range(len(self._turns)):
                if left <= 0:
                    break
                chain = self._turns[0]
                self._turns.rotate(-1)
                for chunk in self._read_chain(chain, min(left, BLOCK_BYTES), now_s):
                    left -= len(chunk.data)
                    chunks.append(chunk)
            return chunks

    def _read_chain(self, chain: Chain, max_bytes: int, now_s: float) -> list[Chunk]:
        chunks = []
        for generation in chain.generations:
            if max_bytes <= 0:
                break
            data = b""
            if generation.handle is not None:
                start, data = generation.read(max_bytes)
                max_bytes -= len(data)
            ends = not data and self._end_is_due(generation, now_s)
            if not data and not ends:
                continue
            late = generation.order < chain.newest_given_order
            if data:
                chain.newest_given_order = max(chain.newest_given_order, generation.order)
            generation.end_given = ends
            start = start if data else generation.position
            chunks.append(Chunk(chain.id, generation.id, generation.path, start, data, ends, late))
            if data and generation.unread > 0:
                break
        return chunks

    def notices(self) -> Sequence[Notice]:
        """What happened since the last call."""
        with self._lock:
            notices, self._notices = self._notices, []
            return notices

    def checkpoint(
        self, generation: str, offset_bytes: int, last_entry_ms: int | None = None, *, ended: bool = False
    ) -> Checkpoint:
        """The value to commit once everything before `offset_bytes` of this generation is delivered.

        `ended` says that the chunk with `ends_generation` is delivered too. Raises KeyError for an unknown generation.
        """
        with self._lock:
            return self._roster.by_id[generation].checkpoint(offset_bytes, last_entry_ms, ended)

    def unsaved(self) -> Sequence[Checkpoint]:
        """Checkpoints of files that were found, renamed or have grown since theirs was made: to be committed with any
        batch, or once a second, so that even files of which nothing is read yet are known after a crash."""
        with self._lock:
            return [
                generation.as_saved(generation.released)
                for generation in self._roster.generations()
                if generation.saved != (generation.delivered, generation.size, generation.path)
            ]

    def release(self, generation: str) -> None:
        """Say that the end of this generation is committed: its descriptor can be closed once its file has no name."""
        with self._lock:
            if (known := self._roster.by_id.get(generation)) is not None:
                known.released = True

    def gone(self) -> Sequence[str]:
        """The generations, since the last call, whose checkpoints are of no use any more: to be deleted."""
        with self._lock:
            gone, self._gone = self._gone, []
            return gone

    def statistics(self) -> Statistics:
        """What is followed now."""
        with self._lock:
            chains = [
                ChainStatistics(
                    chain.id,
                    chain.base,
                    sum(generation.unread for generation in chain.generations),
                    tuple(generation.key for generation in chain.generations),
                )
                for chain in self._roster.chains.values()
            ]
            held = [g for g in self._roster.generations() if g.handle is not None and g.links == 0]
            return Statistics(
                files=sum(len(chain.files) for chain in chains),
                lag_bytes=sum(chain.lag_bytes for chain in chains),
                held_files=len(held),
                held_bytes=sum(generation.size for generation in held),
                chains=tuple(chains),
            )

    def close(self) -> None:
        """Close every descriptor. What was not read stays where the checkpoints say."""
        with self._lock:
            for generation in self._roster.generations():
                generation.close()
            for candidate in self._roster.waiting.values():
                candidate.handle.close()
