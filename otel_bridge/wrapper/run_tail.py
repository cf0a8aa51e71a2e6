"""Follows the log of one run and takes the frames of its connection, and delivers what both say together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from otel_bridge.entries.dap import DapReader, traced_session
from otel_bridge.entries.entry import Malformed
from otel_bridge.errors import SourceError, StateError
from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.delivery import Delivery, Outcome
from otel_bridge.export.encode import RequestEncoder
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.export.transport import open_transport
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.dap_traces import CALLS_KEPT, DapTraces
from otel_bridge.pipeline.mapping_stage import Cut, MappedLog, MappingStage
from otel_bridge.pipeline.marks import Committer
from otel_bridge.pipeline.tail import READ_BYTES, Tail
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.frame_mapping import FrameMapping
from otel_bridge.sessions.frame_saved import frames_to_json, restore_frames
from otel_bridge.sessions.saved import restore_into
from otel_bridge.sessions.span import Span
from otel_bridge.settings import ExportSettings
from otel_bridge.sources import Checkpoint, Chunk, Follower, Start, read_blocks
from otel_bridge.state.place import DEAD_LETTERS
from otel_bridge.state.store import StateStore


class RunStage(MappingStage):
    """A mapping stage whose log has frames beside it. However many chains its files seem to be, it is one log."""

    def __init__(self, options: MappingOptions, malformed: Callable[[Malformed], None], mapping: FrameMapping) -> None:
        super().__init__(options, malformed)
        self.mapping = mapping

    def log(self, chain: str) -> MappedLog:
        """The one log."""
        if chain not in self.logs:
            self.adopt(chain, self.mapping)
        return super().log(chain)

    def frames_changed(self) -> None:
        """Notes that there is something to save, even if nothing of the log was read."""
        for log in self.logs.values():
            log.changed = True

    def cut(self) -> Cut:
        """As of any stage, and with it what of the frames is not over."""
        cut = super().cut()
        for changes in cut.logs.values():
            changes.log["frames"] = frames_to_json(self.mapping)
        return cut


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run's delivery is told. `state_folder` is shared with other runs, `folder` is this one's own, if known.

    `log` None: there is no log to follow.
    """

    mapping: MappingOptions
    export: ExportSettings
    resource: Resource
    state_folder: Path | None
    folder: Path | None
    log: Path | None


class RunTail(Tail):
    """A tail that is told of frames too. Its loop is the caller's, who must `close` it."""

    __slots__ = ("outcome", "store")
    store: StateStore | None
    outcome: Outcome | None

    @classmethod
    def open(cls, settings: RunSettings, mapping: FrameMapping, announcer: Announcer) -> Self:
        """A tail of the run's log that goes on where its state says; `mapping` is put back from it.

        Raises StateError when the state can't be used.
        """
        store = StateStore.open(settings.folder) if settings.folder else None
        paths, traces = [str(settings.log)] if settings.log else [], DapTraces()
        follower = Follower(lambda: [*paths, *traces.paths], start=Start.BEGINNING)
        mapping.dap_calls_kept = CALLS_KEPT if settings.log else 0
        try:
            stage = RunStage(settings.mapping, announcer.malformed, mapping)
            if store is not None:
                _restore(store, stage, follower)
        except BaseException:
            follower.close()
            if store is not None:
                store.close()
            raise
        committer = Committer(store, follower.release, announcer, time.time)
        transport = open_transport(settings.export)
        delivery = Delivery(
            transport,
            RequestEncoder(settings.resource, Scope()),
            DeadLetters(settings.state_folder / DEAD_LETTERS) if settings.state_folder else None,
            committer,
            on_bulletin=lambda bulletin: announcer.once(bulletin.text),
        )
        committer.delivery, committer.endpoint = delivery, transport.endpoint
        tail = cls(follower, stage, delivery, committer, announcer, settings.mapping.idle_timeout_ms, traces=traces)
        tail.store, tail.outcome = store, None
        return tail

    def look(self) -> list[Chunk]:
        """What the log has now."""
        self.follower.look()
        return list(self.follower.read(READ_BYTES))

    def map(self, chunks: Iterable[Chunk]) -> list[Span]:
        """The spans that these bytes made final."""
        return [span for chunk in chunks for span in self.stage.take(chunk)]

    def submit(self, spans: list[Span], *, has_read: bool) -> None:
        """Hands over spans, if there are any, and how far the log was read. There must be room."""
        if spans and isinstance(self.stage, RunStage):
            self.stage.frames_changed()
        if spans or has_read:
            self._submit(spans)

    def look_for_traces(self) -> list[Span]:
        """Looks for DAP traces of the sessions; gives what is final because no more of one will come."""
        return self._check_traces({chain.chain: chain for chain in self.follower.statistics().chains})

    def read_last_traces(self) -> list[Span]:
        """The DAP traces that were found so late that they are not followed yet; whole, for nobody writes them now.

        To be called last: looking again would find them once more.
        """
        followed = {chain.path for chain in self.follower.statistics().chains}
        spans: list[Span] = []
        for path in self.traces.paths:
            session_id = traced_session(path)
            if session_id is not None and path not in followed:
                try:
                    spans += self._whole_trace(path, session_id)
                except SourceError as error:
                    self.announcer.once(str(error))
        return spans

    def _whole_trace(self, path: str, session_id: str) -> list[Span]:
        assert isinstance(self.stage, RunStage)
        reader, spans = DapReader(path), []
        for block in read_blocks(path):
            messages = []
            for item in reader.feed(block):
                if isinstance(item, Malformed):
                    self.announcer.malformed(item)
                else:
                    messages.append(item)
            spans += self.stage.mapping.take_dap(session_id, messages, Path(path).parent.name)
        return spans

    def say(self) -> None:
        """Says what happened to the log's files, and the counts that are due."""
        self._say()

    def close(self, deadline_s: float) -> Outcome:
        """Delivers what is in the air within the deadline, and lets go of everything. Closing twice is allowed."""
        if self.outcome is None:
            self.outcome = self.delivery.close(deadline_s)
            self.follower.close()
            if self.store is not None:
                self.store.close()
        return self.outcome


def _restore(store: StateStore, stage: RunStage, follower: Follower) -> None:
    saved = store.load()
    try:
        for number, (chain, log) in enumerate(saved.logs.items()):
            if number == 0:
                restore_into(stage.mapping, log.log, log.sessions, log.occurrences)
                frames = log.log.get("frames")
                if isinstance(frames, dict):
                    restore_frames(stage.mapping, frames)
            stage.log(chain)
        follower.restore([Checkpoint.from_json(values) for values in saved.checkpoints.values()])
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"the state in {store.path.parent} cannot be read: {error}", "remove the folder if you do not need its log"
        ) from error
