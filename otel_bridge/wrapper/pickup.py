"""What earlier runs left: a run that was killed, or had no backend. Their logs are mapped to the end and delivered."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from otel_bridge.errors import BridgeError
from otel_bridge.export.resource import Resource
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.wrapper.journal import journaled_calls
from otel_bridge.wrapper.run_folder import RunFolder, clear_halves, dead_runs
from otel_bridge.wrapper.run_tail import RunSettings, RunTail

ROOM_S = 0.25
MAX_RUNS = 64
MAX_BYTES = 4 << 30


@dataclass(slots=True)
class PickUp:
    """Takes up one dead run after the other, in a thread of its own, as long as this run lives.

    `settings` are those of this run, with the folder and log of another put in. A log that a person chose is read up to
    `until_ms`, Unix time: what comes after is this run's.
    """

    settings: RunSettings
    until_ms: int
    announcer: Announcer
    stop: threading.Event

    def run(self) -> None:
        """Take up all there are; what cannot be delivered stays for the next run."""
        delivered = 0
        for folder in self._dead_runs():
            try:
                if not self.stop.is_set() and self._take_up(folder):
                    delivered += 1
                    folder.remove()
            except BridgeError as error:
                self.announcer.once(str(error))
            finally:
                folder.release()
        if delivered:
            self.announcer.once(f"what {delivered} earlier run{'s' * (delivered > 1)} had left is delivered")
        self._trim()
        if self.settings.state_folder:
            clear_halves(self.settings.state_folder, time.time())

    def _dead_runs(self) -> Iterator[RunFolder]:
        return dead_runs(self.settings.state_folder) if self.settings.state_folder else iter(())

    def _take_up(self, folder: RunFolder) -> bool:
        """Whether all of it is delivered now."""
        left = folder.description()
        if left.is_alive():
            return False
        frames = FrameOptions(is_live=False)
        if not left.is_private:
            frames = replace(frames, from_ms=left.started_ms, until_ms=self.until_ms)
        # Never more than that run's user allowed, nor than this one's.
        capture = min(self.settings.mapping.capture, left.capture)
        options = replace(self.settings.mapping, capture=capture)
        mapping = FrameMapping(options, frames)
        settings = replace(self.settings, mapping=options, folder=folder.path, log=left.log)
        if left.resource:
            settings = replace(settings, resource=Resource(left.resource))
        tail = RunTail.open(settings, mapping, self.announcer)
        mapping.recall(journaled_calls(folder.path))
        try:
            return self._read_to_the_end(tail, mapping)
        finally:
            tail.close(0.0)

    def _read_to_the_end(self, tail: RunTail, mapping: FrameMapping) -> bool:
        while self._wait_for_room(tail):
            chunks = tail.look()
            spans = tail.map(chunks)
            if not chunks:
                spans += mapping.over()
                spans += [*tail.look_for_traces(), *tail.read_last_traces()]
                spans += mapping.close_dap(list(mapping.dap))
            tail.submit(spans, has_read=bool(chunks))
            if not chunks:
                break
        while not tail.delivery.wait_until_done(ROOM_S):
            if self.stop.is_set():
                return False
        return not self.stop.is_set()

    def _wait_for_room(self, tail: RunTail) -> bool:
        while not self.stop.is_set():
            if tail.delivery.wait_for_room(ROOM_S):
                return True
        return False

    def _trim(self) -> None:
        """Removes the oldest of what is left beyond the limits: without a backend it would grow for ever."""
        folders = sorted(self._dead_runs(), key=lambda folder: folder.path.stat().st_mtime)
        try:
            sizes = [_size_bytes(folder.path) for folder in folders]
            removed, removed_bytes = 0, 0
            while len(sizes) - removed > MAX_RUNS or sum(sizes[removed:]) > MAX_BYTES:
                folders[removed].remove()
                removed_bytes += sizes[removed]
                removed += 1
        finally:
            for folder in folders:
                folder.release()
        if removed:
            self.announcer.once(
                f"removed what {removed} earlier runs had left ({removed_bytes:,} bytes, never delivered):"
                f" only {MAX_RUNS} runs and {MAX_BYTES:,} bytes are kept"
            )


def _size_bytes(folder: Path) -> int:
    return sum((Path(parent) / name).lstat().st_size for parent, _, names in os.walk(folder) for name in names)
