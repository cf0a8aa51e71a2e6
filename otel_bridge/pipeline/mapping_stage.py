"""Chunks of log files in, finished spans out, with the place in each file up to which they account for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from otel_bridge.entries.dap import DapMessage, DapReader, traced_session
from otel_bridge.entries.entry import Entry, Item, Malformed, StateChange
from otel_bridge.entries.reader import EntryReader
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import MappingChanges, take_changes
from otel_bridge.sessions.span import Span
from otel_bridge.sources.chunk import Chunk


@dataclass(slots=True)
class MappedLog:
    """One log (rotation chain) and what is being read of it: a reader for each of its generations."""

    mapping: LogMapping
    readers: dict[str, EntryReader] = field(default_factory=dict)
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """What changed between two cuts: offsets by generation (in bytes), ended generations, and mappings by chain."""

    offsets: Mapping[str, int]
    last_entry_ms: Mapping[str, int]
    ended: tuple[str, ...]
    logs: Mapping[str, MappingChanges]


class MappingStage:
    """Reads chunks, whichever log they come from. `malformed` is told of each line that is skipped.

    `dap_calls_kept` says of a log (by path) how many ended calls of a session to remember for its DAP trace; 0 where
    there can be none.
    """

    def __init__(
        self,
        options: MappingOptions,
        malformed: Callable[[Malformed], None],
        dap_calls_kept: Callable[[str], int] = lambda path: 0,
    ) -> None:
        self._options = options
        self._dap_calls_kept = dap_calls_kept
        self._dap_readers: dict[str, DapReader] = {}
        self._malformed = malformed
        self.logs: dict[str, MappedLog] = {}
        self.entries = 0
        self.flaws: Counter[str] = Counter()
        self._offsets: dict[str, int] = {}
        self._last_entry_ms: dict[str, int] = {}
        self._ended: list[str] = []

    def adopt(self, chain: str, mapping: LogMapping) -> None:
        """Goes on with a mapping that was saved."""
        self.logs[chain] = MappedLog(mapping)

    def log(self, chain: str) -> MappedLog:
        """The log of a chain, new if it was not known."""
        log = self.logs.get(chain)
        if log is None:
            log = self.logs[chain] = MappedLog(LogMapping(self._options))
        return log

    def take(self, chunk: Chunk) -> list[Span]:
        """The spans that these bytes made final: of a log, or of a session's DAP trace."""
        traced = traced_session(chunk.path)
        if traced is not None:
            return self._take_dap(chunk, traced)
        log = self.log(chunk.chain)
        reader = log.readers.get(chunk.generation)
        if reader is None:
            reader = log.readers[chunk.generation] = EntryReader(chunk.path, start_byte=chunk.start_byte)
        items = reader.feed(chunk.data)
        if chunk.ends_generation:
            items += reader.flush()
        if not log.mapping.dap_calls_kept:
            log.mapping.dap_calls_kept = self._dap_calls_kept(chunk.path)
        spans = [*self._map(log, items), *log.mapping.place_dap()]
        self._offsets[chunk.generation] = reader.pending_start_byte
        self._last_entry_ms[chunk.generation] = log.mapping.latest_ms
        if chunk.ends_generation:
            del log.readers[chunk.generation]
            self._ended.append(chunk.generation)
        return spans

    def _map(self, log: MappedLog, items: Iterable[Item]) -> list[Span]:
        entries: list[Entry | StateChange] = []
        for item in items:
            if isinstance(item, Malformed):
                self.flaws[item.flaw] += 1
                self._malformed(item)
            else:
                entries.append(item)
        if not entries:
            return []
        self.entries += len(entries)
        log.changed = True
        return log.mapping.take(entries)

    def _take_dap(self, chunk: Chunk, session_id: str) -> list[Span]:
        reader = self._dap_readers.get(chunk.generation)
        if reader is None:
            reader = self._dap_readers[chunk.generation] = DapReader(chunk.path, start_byte=chunk.start_byte)
        messages: list[DapMessage] = []
        for item in reader.feed(chunk.data):
            if isinstance(item, Malformed):
                self.flaws[item.flaw] += 1
                self._malformed(item)
            else:
                messages.append(item)
        self._offsets[chunk.generation] = reader.pending_start_byte
        self._last_entry_ms[chunk.generation] = messages[-1].time_ms if messages else 0
        if chunk.ends_generation:
            del self._dap_readers[chunk.generation]
            self._ended.append(chunk.generation)
        log = next((log for log in self.logs.values() if session_id in log.mapping.dap), None)
        if log is None:
            return []
        log.changed = True
        return log.mapping.take_dap(session_id, messages, Path(chunk.path).parent.name)

    def cut(self) -> Cut:
        """What the spans given out so far account for, since the last cut."""
        logs = {}
        for chain, log in self.logs.items():
            if log.changed:
                logs[chain] = take_changes(log.mapping)
                log.changed = False
        cut = Cut(self._offsets, self._last_entry_ms, tuple(self._ended), logs)
        self._offsets, self._last_entry_ms, self._ended = {}, {}, []
        return cut
