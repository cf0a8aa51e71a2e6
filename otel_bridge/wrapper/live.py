"""The live part of a run: frames and log in, spans out, until the server has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from otel_bridge.entries.frame import Frame, Gap
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.tail import CHECK_EVERY_S
from otel_bridge.sessions.frame_mapping import FrameMapping
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.span import Span
from otel_bridge.wrapper.inlet import Inlet
from otel_bridge.wrapper.journal import Journal
from otel_bridge.wrapper.records import Record, ServerEnd
from otel_bridge.wrapper.run_tail import RunTail
from otel_bridge.wrapper.server import Server

ROOM_S = 1.0
BUSY_S, BUSY_AFTER_S, QUIET_S = 0.02, 2.0, 0.25
"""How often the log is looked at while calls are in flight and for a while after, and when nothing happens."""
_GONE_S = 0.02


class LiveRun:
    """One run. `open_tail` is given the server's own name once something is to be delivered.

    What is heard goes to the `journal` before anything of it is sent.
    """

    def __init__(
        self,
        inlet: Inlet,
        reader: FrameReader,
        mapping: FrameMapping,
        announcer: Announcer,
        open_tail: Callable[[str], RunTail],
        server: Server,
        journal: Journal | None,
    ) -> None:
        self._inlet = inlet
        self._reader = reader
        self._mapping = mapping
        self._announcer = announcer
        self._open_tail = open_tail
        self._server = server
        self._journal = journal
        self._tail: RunTail | None = open_tail("") if mapping.frames.is_logged else None
        self._has_ended = False
        self._active_s = self._traced_s = 0.0

    def run(self, stop: threading.Event, delivery_s: float) -> bool:
        """Export until the server has ended or `stop` is set, and `delivery_s` longer at most.

        Returns whether nothing is left to do: the server has ended, and all that it said is delivered.
        """
        over = threading.Event()
        try:
            return self._run(stop, delivery_s, over)
        finally:
            over.set()

    def _run(self, stop: threading.Event, delivery_s: float, over: threading.Event) -> bool:
        while not self._inlet.is_ending and not stop.is_set():
            if self._tail is not None:
                self._tail.say()
            if self._wait_for_room(time.monotonic() + ROOM_S):
                self._inlet.wait(self._patience_s())
                self._round()
        end_s = time.monotonic() + delivery_s
        # Beside the delivery: a backend that is away must not be what lets a server live on.
        threading.Thread(target=self._server.end_if_abandoned, args=(over,), name="ending", daemon=True).start()
        while self._wait_for_room(end_s) and not self._inlet.is_over and not stop.is_set():
            self._round()
        if not stop.is_set():
            self._wait_for_the_end(end_s)
        while self._wait_for_room(end_s) and self._round():
            pass
        is_delivered = self._finish(end_s)
        if not is_delivered:
            self._note_the_rest(end_s)
        return is_delivered

    def _patience_s(self) -> float:
        now_s = time.monotonic()
        is_busy = bool(self._mapping.calls.waiting) or now_s - self._active_s < BUSY_AFTER_S
        longest_s = BUSY_S if is_busy and self._mapping.frames.is_logged else QUIET_S
        return max(0.0, min(longest_s, self._mapping.calls.due_s() - now_s))

    def _round(self) -> bool:
        """Takes what there is and hands it over; there must be room. False when the log had nothing new."""
        tail = self._tail
        # The log first, then the frames: whatever the log tells of has passed by then.
        chunks = tail.look() if tail is not None else []
        records = self._inlet.take()
        spans = self._hear(records)
        if tail is not None:
            spans += tail.map(chunks)
        now_s = time.monotonic()
        if not chunks:
            spans += self._mapping.settle(now_s)
        if tail is not None and now_s - self._traced_s >= CHECK_EVERY_S:
            self._traced_s = now_s
            spans += tail.look_for_traces()
        if chunks or records:
            self._active_s = now_s
        if spans and tail is None:
            tail = self._tail = self._open_tail(self._reader.server_name)
        if tail is not None:
            tail.submit(spans, has_read=bool(chunks))
            if (
                self._journal is not None
                and not self._mapping.calls.waiting
                and not tail.delivery.statistics().in_flight_batches
            ):
                self._journal.cut()
        return bool(chunks)

    def _hear(self, records: Iterable[Record]) -> list[Span]:
        spans: list[Span] = []
        unreadable = self._reader.unreadable
        for record in records:
            match record:
                case Frame():
                    if record.data is None:
                        self._announcer.repeated(
                            "long", f"a frame of {record.size_bytes:,} bytes passed and was not parsed"
                        )
                    calls = self._reader.read(record)
                    if self._journal is not None:
                        self._journal.note(calls)
                    spans += self._mapping.hear(calls, time.monotonic())
                case Gap():
                    self._mapping.calls.miss(record)
                    self._announcer.repeated(
                        "gap", f"{record.frames} frames ({record.size_bytes:,} bytes) passed and were not exported"
                    )
                case ServerEnd():
                    self._has_ended = True
        for _ in range(self._reader.unreadable - unreadable):
            self._announcer.repeated("unreadable", "a line passed that is no JSON-RPC message")
        return spans

    def _wait_for_the_end(self, end_s: float) -> None:
        """The pump said so, or is gone; then the server, whose input has ended, will soon be."""
        waiting = threading.Event()
        while not self._has_ended and time.monotonic() < end_s:
            self._has_ended = self._server.has_ended()
            waiting.wait(0 if self._has_ended else _GONE_S)

    def _note_the_rest(self, end_s: float) -> None:
        """What there was no room for: the next run is to know of it what the frames say."""
        while self._journal is not None and not self._inlet.is_over and time.monotonic() < end_s + ROOM_S:
            if not self._inlet.wait(_GONE_S):
                return
            for record in self._inlet.take():
                if isinstance(record, Frame):
                    self._journal.note(self._reader.read(record))

    def _finish(self, end_s: float) -> bool:
        spans = self._mapping.over() if self._has_ended else []
        if spans and self._tail is None:
            self._tail = self._open_tail(self._reader.server_name)
        tail = self._tail
        if tail is None:
            return self._has_ended
        is_handed_over = self._submit_last(tail, spans, end_s)
        outcome = tail.close(max(0.0, end_s - time.monotonic()))
        tail.say()
        is_delivered = is_handed_over and not outcome.left_batches
        if not is_delivered:
            reason = outcome.reason or "the backend takes no more"
            what = "the next run will send the rest"
            if not self._mapping.frames.is_logged:
                lost = f"{outcome.left_spans} spans" if outcome.left_spans else "calls"
                what = f"{lost} are lost, because they stand in no log"
            self._announcer.once(f"not all was delivered to {tail.committer.endpoint} ({reason}); {what}")
        return is_delivered and self._has_ended

    def _submit_last(self, tail: RunTail, spans: list[Span], end_s: float) -> bool:
        """Hands over what the end made final, with the rest of the DAP traces; False if there is no room for it."""
        if not self._wait_for_room(end_s):
            return False
        spans = [*spans, *tail.look_for_traces()]
        if self._has_ended:
            spans += tail.read_last_traces()
            spans += self._mapping.close_dap(list(self._mapping.dap))
        tail.submit(spans, has_read=False)
        return True

    def _wait_for_room(self, end_s: float) -> bool:
        return self._tail is None or self._tail.delivery.wait_for_room(max(0.0, end_s - time.monotonic()))
