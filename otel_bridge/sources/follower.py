"""Following logs: opening what appears, reading it in order, saying what happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from otel_bridge.sources.chain import Chain
from otel_bridge.sources.chunk import ChainStatistics, Chunk, Statistics
from otel_bridge.sources.files import Files, LocalFiles
from otel_bridge.sources.generation import ChangedError, Generation
from otel_bridge.sources.holding import Caps, InUse, end_is_due, wake
from otel_bridge.sources.identity import Checkpoint
from otel_bridge.sources.looking import Looker
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.roster import Roster
from otel_bridge.sources.starting import Only, Start

BLOCK_BYTES = 262_144


def _unknown_use(_: object) -> None:
    return None


class Follower:
    """Follows the logs that paths, folders and globs mean. All methods may be called from any thread.

    `look` opens and notes, `read` gives out bytes; neither waits for the other's caller, so that looking goes on while
    nobody reads. `patterns` is a function where the places change over time (discovery.py). `in_use` says whether a
    process writes to a file (processes.py).
    """

    def __init__(
        self,
        patterns: Sequence[str] | Callable[[], Sequence[str]],
        *,
        start: Start = Start.AUTO,
        files: Files | None = None,
        in_use: InUse = _unknown_use,
        caps: Caps | None = None,
        only: Only | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        self._files = LocalFiles() if files is None else files
        self._in_use = in_use
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._roster = Roster()
        self._ready: dict[str, Chain] = {}
        self._unlooked: set[str] = set()
        """Chains that changed since the last look, of which nothing is read before the next one."""
        self._late: set[str] = set()
        self._looker = Looker(
            self._roster,
            self._files,
            patterns if callable(patterns) else lambda: patterns,
            start,
            in_use,
            caps or Caps(),
            only or Only(),
            unix_s,
        )

    def restore(self, checkpoints: Iterable[Checkpoint], *, only_asked: bool = False) -> None:
        """Go on where these say. To be called before the first look.

        With `only_asked` logs that the patterns do not mean are left as they are (and their checkpoints with them),
        until the patterns do; else all logs of the checkpoints are followed on.
        """
        self._looker.to_restore = list(checkpoints)
        self._looker.only_asked = only_asked

    def look(self, changed: Collection[str] | None = None) -> bool:
        """Open what is new, note names and sizes; whether there is something to read. Never waits for a reader.

        `changed` are the paths that are said to have changed, if anything was said: others are asked less often.
        """
        with self._lock:
            now_s = self._monotonic_s()
            touched = [*self._looker.look(now_s, changed), *self._unlooked]
            self._unlooked.clear()
            for name in touched:
                chain = self._roster.chains.get(name)
                if chain is None or name in self._ready:
                    continue
                if any(self._due(found, now_s) for found in chain.generations):
                    self._ready[name] = chain
            return bool(self._ready)

    @property
    def ready(self) -> bool:
        """Whether the last look found something that is not read yet."""
        return bool(self._ready)

    def folders(self) -> frozenset[tuple[str, int, int]]:
        """The folders to watch that are there now: path, device and inode (a folder that was made anew is another)."""
        with self._lock:
            return self._looker.folders()

    def _due(self, generation: Generation, now_s: float) -> bool:
        if generation.unread > 0:
            return generation.handle is not None or generation.resting
        return end_is_due(self._roster, generation, now_s, self._in_use)

    def read(self, max_bytes: int = 1_048_576) -> Sequence[Chunk]:
        """The next bytes, at most about `max_bytes` in all: of each chain in turn, of a chain the oldest first.

        Gives nothing that the last look did not find; after a call that gives nothing, look again.
        """
        with self._lock:
            now_s = self._monotonic_s()
            chunks: list[Chunk] = []
            left_bytes = max_bytes
            while self._ready and left_bytes > 0:
                name, chain = next(iter(self._ready.items()))
                del self._ready[name]
                read = self._read_chain(chain, min(left_bytes, BLOCK_BYTES), now_s)
                chunks += read
                left_bytes -= sum(len(chunk.data) for chunk in read)
                if read and name not in self._unlooked and any(self._due(found, now_s) for found in chain.generations):
                    self._ready[name] = chain  # at the end of the line: the other chains come first
            return chunks

    def _read_chain(self, chain: Chain, max_bytes: int, now_s: float) -> list[Chunk]:
        """The next bytes of the oldest generation that has any, and the ends that are due before it."""
        chunks: list[Chunk] = []
        for generation in list(chain.generations):
            if not self._due(generation, now_s):
                continue
            if generation.unread == 0:
                generation.end_given = True
                chunks.append(self._chunk(chain, generation, generation.position, b""))
                continue
            try:
                if generation.resting and not wake(self._files, generation, to_read=True):
                    continue
                start, data = generation.read(max_bytes)
            except ChangedError:
                # A look finds out where its bytes went, and what comes next: an older part may lie there unseen.
                generation.doubt()
                self._unlooked.add(chain.id)
                return chunks
            except OSError as error:
                self._looker.trouble.note(generation.path, error)
                continue
            if data:
                chunks.append(self._chunk(chain, generation, start, data))
                return chunks
        return chunks

    def _chunk(self, chain: Chain, generation: Generation, start: int, data: bytes) -> Chunk:
        late = bool(data) and generation.order < chain.newest_given_order
        if late and generation.id not in self._late:
            self._late.add(generation.id)
            text = f"{generation.path} still grew after it was rotated away (a second writer?); its lines come late"
            self._roster.say(NoticeKind.LATE_LINES, generation, text)
        if data:
            chain.newest_given_order = max(chain.newest_given_order, generation.order)
        return Chunk(chain.id, generation.id, generation.path, start, data, not data, late)

    def note(self, notice: Notice) -> None:
        """Add something to be said; for whoever makes it look."""
        with self._lock:
            self._roster.notices.append(notice)

    def notices(self) -> Sequence[Notice]:
        """What happened since the last call."""
        with self._lock:
            notices, self._roster.notices = self._roster.notices, []
            return notices

    def checkpoint(
        self, generation: str, offset_bytes: int, last_entry_ms: int | None = None, *, ended: bool = False
    ) -> Checkpoint:
        """The value to commit once everything before `offset_bytes` of this generation is delivered.

        `ended` says that the chunk with `ends_generation` is delivered too. Raises KeyError for an unknown generation.
        """
        with self._lock:
            found = self._roster.by_id[generation]
            found.delivered = offset_bytes
            found.last_entry_ms = found.last_entry_ms if last_entry_ms is None else last_entry_ms
            saved = self._save(found)
            return replace(saved, ended=True) if ended else saved

    def _save(self, generation: Generation) -> Checkpoint:
        try:
            saved = generation.checkpoint()
        except ChangedError:
            generation.doubt()
            self._unlooked.update(self._looker.look(self._monotonic_s()))
            self._ready.pop(generation.chain, None)
            saved = generation.checkpoint()
        self._roster.unsaved.pop(generation.id, None)
        return saved

    def waiting(self) -> frozenset[str]:
        """The chains with checkpoints that are not restored: not asked for now, or not to be read now."""
        with self._lock:
            return frozenset(checkpoint.chain for checkpoint in self._looker.to_restore)

    def unsaved(self) -> Sequence[Checkpoint]:
        """Checkpoints of files that were found, renamed or have grown since theirs was made: to be committed with any
        batch, so that even files of which nothing is read yet are known after a crash.
        """
        with self._lock:
            return [self._save(generation) for generation in list(self._roster.unsaved.values())]

    def release(self, generation: str) -> None:
        """Say that the end of this generation is committed: it can be forgotten once its file has no name."""
        with self._lock:
            found = self._roster.by_id.get(generation)
            if found is not None and found.end_given:
                found.released = True

    def gone(self) -> Sequence[str]:
        """The generations, since the last call, whose checkpoints are of no use any more: to be deleted."""
        with self._lock:
            gone, self._roster.gone = self._roster.gone, []
            return gone

    def statistics(self) -> Statistics:
        """What is followed now."""
        with self._lock:
            now_s = self._monotonic_s()
            chains = tuple(
                ChainStatistics(
                    chain.id,
                    chain.base,
                    sum(generation.unread for generation in chain.generations),
                    tuple(generation.key for generation in chain.generations if not generation.over),
                )
                for chain in self._roster.chains.values()
                if chain.generations
            )
            held = [found for found in self._roster.by_id.values() if found.handle and found.nameless(now_s)]
            return Statistics(
                files=sum(len(chain.files) for chain in chains),
                lag_bytes=sum(chain.lag_bytes for chain in chains),
                held_files=len(held),
                held_bytes=sum(generation.size for generation in held),
                chains=chains,
            )

    def close(self) -> None:
        """Close every descriptor. What was not read stays where the checkpoints say."""
        with self._lock:
            for generation in self._roster.by_id.values():
                generation.close()
            for candidate in self._roster.waiting.values():
                candidate.handle.close()
            self._roster.waiting.clear()
            for key in list(self._roster.ignored):
                self._roster.stop_ignoring(key)
