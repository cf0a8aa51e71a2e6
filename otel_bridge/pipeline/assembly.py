"""Puts the parts of a tail together, and takes them apart in the right order."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.errors import StateError
from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.delivery import Delivery
from otel_bridge.export.encode import RequestEncoder
from otel_bridge.export.resource import Scope
from otel_bridge.export.transport import open_transport
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.dap_traces import DapTraces
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.marks import Committer
from otel_bridge.pipeline.servers import LogWriters
from otel_bridge.pipeline.tail import Tail
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.saved import restore
from otel_bridge.settings import Exporter, ExportSettings
from otel_bridge.sources import Checkpoint, Follower, Only, Start
from otel_bridge.sources.processes import Holders
from otel_bridge.sources.watching import Watcher
from otel_bridge.state.place import DEAD_LETTERS, state_folder
from otel_bridge.state.store import StateStore

STOP_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class TailSettings:
    """What a tail is told: where to read, where to begin, where to keep its state, what to send and where to."""

    paths: tuple[str, ...]
    start: str | None
    state_dir: Path | None
    mapping: MappingOptions
    export: ExportSettings
    dap_traces: tuple[Path, ...] = ()


@contextlib.contextmanager
def running_tail(settings: TailSettings, announcer: Announcer, stop: threading.Event) -> Iterator[Tail]:
    """A tail that is set up and looks for files; its `run` is the caller's. At the end all is delivered or said.

    Raises StateError when the state can't be used, SettingError for settings that can't.
    """
    folder = state_folder(settings.state_dir)
    if settings.export.exporter is Exporter.CONSOLE and settings.state_dir is None:
        folder /= "console"  # what was only shown is still to be delivered
    with StateStore.open(folder) as store:
        holders = Holders()
        traces = DapTraces(settings.dap_traces)
        follower = _follower(settings, holders, traces)
        committer = Committer(store, follower.release, announcer, time.time)
        transport = open_transport(settings.export)
        if transport.proxy:
            announcer.once(f"exports go through the proxy {transport.proxy}")
        stage = MappingStage(settings.mapping, announcer.malformed, traces.calls_kept)
        delivery = Delivery(
            transport,
            RequestEncoder(settings.export.resource, Scope()),
            DeadLetters(folder / DEAD_LETTERS),
            committer,
            on_bulletin=lambda bulletin: announcer.once(bulletin.text),
        )
        committer.delivery, committer.endpoint = delivery, transport.endpoint
        tail = Tail(follower, stage, delivery, committer, announcer, settings.mapping.idle_timeout_ms, holders, traces)
        _restore(tail, store, settings, folder)
        # Before anything else: to a tail that knows of no unread bytes every saved log would seem silent.
        follower.look()
        files = follower.statistics().files
        tail.found_none = not files
        announcer.once(_beginning(files, settings, transport.endpoint))
        looking = _Looking(Watcher(follower, tail.wake.set), tail, stop)
        looking.start()
        try:
            yield tail
            looking.check()
        finally:
            stop.set()
            looking.join()
            outcome = delivery.close(STOP_DEADLINE_S)
            follower.close()
            if outcome.left_batches:
                announcer.once(f"{outcome.left_spans} spans will be sent after the next start: {outcome.reason}")
            announcer.flush(final=True)


def _beginning(files: int, settings: TailSettings, endpoint: str) -> str:
    """What a person who started a tail wants to hear: what is followed, and where it goes."""
    where = ", ".join(settings.paths) or "the places where the server logs by default"
    if files:
        return f"following {'1 log file' if files == 1 else f'{files} log files'} in {where}; sending to {endpoint}"
    more = "" if settings.paths else " (`otel-bridge doctor` names them)"
    return f"no log yet in {where}{more}: looking again; sending to {endpoint}"


class _Looking(threading.Thread):
    """The thread that looks. A mistake in it ends the tail: one that no longer looks would only seem to run."""

    def __init__(self, watcher: Watcher, tail: Tail, stop: threading.Event) -> None:
        super().__init__(name="looking", daemon=True)
        self._watcher, self._tail, self._stop_tail = watcher, tail, stop
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._watcher.run(self._stop_tail)
        except BaseException as failure:  # noqa: BLE001, it is raised by `check` in the thread that asks
            self._failure = failure
            self._stop_tail.set()
            self._tail.wake.set()

    def check(self) -> None:
        """Raises what ended the thread, if anything did."""
        if self._failure is not None:
            raise self._failure


def _follower(settings: TailSettings, holders: Holders, traces: DapTraces) -> Follower:
    start = Start(settings.start) if settings.start else Start.AUTO
    places: Callable[[], Sequence[str]] = lambda: settings.paths  # noqa: E731
    only = Only()
    if not settings.paths:
        from otel_bridge.sources.discovery import default_places

        # Whoever names a log means it, whosever it is. In the default places, which many can write to, lie others' too.
        places = default = default_places(holders)
        only = Only(os.getuid(), lambda: default.claimed)
    return Follower(lambda: [*places(), *traces.paths], start=start, in_use=holders.in_use, only=only)


def _restore(tail: Tail, store: StateStore, settings: TailSettings, folder: Path) -> None:
    """Goes on where the last run was: in all logs without PATH, else in those that are named now."""
    saved = store.load()
    try:
        for chain, log in saved.logs.items():
            tail.stage.adopt(chain, restore(settings.mapping, log.log, log.sessions, log.occurrences))
            tail.writers[chain] = LogWriters.from_json(log.log.get("writers"))
        tail.committer.restore(saved.checkpoints)
        checkpoints = [Checkpoint.from_json(values) for values in saved.checkpoints.values()]
        tail.follower.restore(checkpoints, only_asked=bool(settings.paths))
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"the state in {folder} cannot be read: {error}",
            "move the folder away to begin anew: what was delivered before will be sent again",
        ) from error
