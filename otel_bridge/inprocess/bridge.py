"""A bridge inside a program: entries in, spans out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypedDict

from otel_bridge.entries.flaw import Flaw
from otel_bridge.errors import SettingError
from otel_bridge.inprocess import lifetimes
from otel_bridge.inprocess.announcements import Announcements
from otel_bridge.inprocess.intake import Intake
from otel_bridge.inprocess.records import snapshot_of_record
from otel_bridge.inprocess.snapshot import snapshot_of_mapping, snapshot_of_text
from otel_bridge.inprocess.target import Target
from otel_bridge.inprocess.worker import Worker, say_counts
from otel_bridge.mapping_options import resolve_mapping_options
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.log_mapping import LogMapping

if TYPE_CHECKING:
    from logging import Formatter, LogRecord

    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

CLOSE_TIMEOUT_S = 5.0
JOIN_GRACE_S = 0.5
"""Beyond the deadline: its thread is done at it, and has still to say so."""

DEFAULT_MAX_QUEUED_ENTRIES = 20_000


class BridgeOptions(TypedDict, total=False):
    """The keyword arguments of `Bridge`, for those who pass them on."""

    capture: str | Capture
    service_name: str | None
    endpoint: str | None
    protocol: str | None
    headers: Mapping[str, str]
    idle_timeout_s: float
    max_queued_entries: int


class BridgeStatistics(NamedTuple):
    """Numbers of one bridge in one process, since its start.

    `entries` were taken (`queued` of them are not mapped yet), `dropped` found the queue full or the bridge closed,
    `malformed` looked like entries and are none. Of the `spans` that became final so far `delivered` were acknowledged
    (by an exporter of the host's: taken without a failure) and `refused` never will be. `trouble` says why nothing gets
    through at the moment; it is empty if all is well.
    """

    entries: int
    queued: int
    dropped: int
    malformed: int
    spans: int
    delivered: int
    refused: int
    trouble: str


class Bridge:
    """Takes entries of mcp-debugger's structured log from a program itself, and exports what they become.

    `exporter` is any `SpanExporter` or `SpanProcessor` of the OpenTelemetry SDK. It is this bridge's from then on:
    called by the bridge's thread, and shut down by `close`. Without one, spans go over OTLP to where the
    OTEL_EXPORTER_OTLP_* variables or `endpoint`, `protocol` and `headers` say, as with `otel-bridge tail`;
    OTEL_TRACES_EXPORTER can be `console` or `none` instead. With OTEL_SDK_DISABLED=true the bridge takes nothing.

    `capture` is `metadata`, `arguments` or `full`. `idle_timeout_s` is the silence after which open sessions count as
    over. `max_queued_entries` may wait to be mapped; more are dropped, counted and said.

    Nothing is lost while the program runs and the backend can be reached, or comes back before the queue is full. What
    has no answer when the program ends is lost: there is no log to go back to. Warnings go to the logger `otel_bridge`.

    The thread starts with the first entry. A forked child has a thread, a queue and a connection of its own; sessions
    that the parent began stay the parent's, and what the child says of them is added to their traces. At the exit of
    the program every bridge is closed, within 5 s for all.

    Raises SettingError for an option or an environment variable that cannot be used, TypeError for an `exporter` that
    is none, and ValueError for an option that has no effect beside it.
    """

    def __init__(
        self,
        exporter: SpanExporter | SpanProcessor | None = None,
        *,
        capture: str | Capture = Capture.ARGUMENTS,
        service_name: str | None = None,
        endpoint: str | None = None,
        protocol: str | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout_s: float = 3600.0,
        max_queued_entries: int = DEFAULT_MAX_QUEUED_ENTRIES,
    ) -> None:
        options = resolve_mapping_options(capture, round(idle_timeout_s * 1000))
        if max_queued_entries < 1:
            raise SettingError("max_queued_entries: less than one entry", "give a number such as 20000")
        self._target = Target(exporter, service_name, endpoint, protocol, headers or {})
        self._intake = Intake(max_queued_entries)
        self._announcements = Announcements()
        self._mapping = LogMapping(options)
        self._inherited: list[bytes] | None = None
        self._of_the_parent: list[object] = []
        self._starting = threading.RLock()
        self._worker: Worker | None = None
        self._deadline_s: float | None = None
        self._is_said_closed = False
        self._held: list[threading.Lock | threading.RLock] = []
        lifetimes.watch(self)

    def feed(self, entry: Mapping[str, object] | bytes | str) -> None:
        """Take one entry: a mapping as in the log (with `message` and `timestamp`), or its JSON text.

        Never raises and never waits; what is no entry at all is ignored. The entry is copied, and its secrets are taken
        out, before this returns.
        """
        if isinstance(entry, Mapping):
            self._admit(snapshot_of_mapping, entry)
        elif isinstance(entry, str):
            self._admit(_snapshot_of_str, entry)
        else:
            self._admit(snapshot_of_text, entry)

    def feed_record(self, record: LogRecord, formatter: Formatter | None = None) -> None:
        """Take the entry in a log record, if there is one; see `otel_bridge.inprocess.records`. Never raises."""
        self._admit(snapshot_of_record, record, formatter)

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until every span that is final by now has an answer; False if that takes longer than `timeout_s`.

        Spans of calls and sessions that are still open are not final: `close` ends them. After it there is no waiting.
        """
        worker = self._worker
        if worker is None:
            return True
        if worker.join(0):
            timeout_s = 0
        end_s = time.monotonic() + timeout_s
        if not self._intake.wait_until_settled(timeout_s):
            return False
        return worker.sink is None or worker.sink.flush(max(0.0, end_s - time.monotonic()))

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> BridgeStatistics:
        """End all sessions that are open, deliver what is left within `timeout_s`, and give the final numbers.

        A session that is ended by this has the end reason `not_closed`, as in a replay of the same entries.
        """
        self.begin_close(time.monotonic() + timeout_s)
        self.end_close()
        return self.statistics()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def statistics(self) -> BridgeStatistics:
        """The numbers of this moment."""
        intake = self._intake.counts()
        worker = self._worker
        sink = worker.counts() if worker else None
        return BridgeStatistics(
            entries=intake.accepted,
            queued=intake.queued,
            dropped=intake.dropped,
            malformed=intake.malformed,
            spans=worker.made_spans if worker else 0,
            delivered=sink.delivered if sink else 0,
            refused=sink.refused if sink else 0,
            trouble=sink.trouble if sink else "",
        )

    # What follows is for `lifetimes`, and for `close`.

    def begin_close(self, deadline_s: float) -> None:
        """Take nothing more, and be done by `deadline_s` of `time.monotonic`. Returns at once."""
        with self._starting:
            if self._deadline_s is None:
                self._deadline_s = deadline_s
                if self._worker is not None:
                    self._worker.deadline_s = deadline_s
                self._intake.close()

    def end_close(self) -> None:
        """Wait until it is done, or the deadline has passed, and say what is lost."""
        worker = self._worker
        if self._deadline_s is None or (worker is not None and worker.ident == threading.get_ident()):
            return
        if worker is not None:
            worker.join(max(0.0, self._deadline_s - time.monotonic()) + JOIN_GRACE_S)
        else:
            self._target.close(self._announcements)
        self._intake.abandon()
        say_counts(self._intake, self._announcements, is_last=True)
        now = self.statistics()
        left = now.spans - now.delivered - now.refused
        reason = f" ({now.trouble})" if now.trouble else ""
        self._announcements.count("left", left, f"spans without an answer at the end, they are lost{reason}: {{}}")

    def hold(self) -> None:
        """Let nobody change anything, until `release`."""
        self._held = [self._intake.lock] if self._worker is None else [self._worker.mapping_lock, self._intake.lock]
        for lock in self._held:
            lock.acquire()

    def release(self) -> None:
        """Go on."""
        for lock in reversed(self._held):
            lock.release()

    def renew(self) -> None:
        """This is the child now: what the parent has in hand is the parent's."""
        queued = self._intake.renew()
        if self._worker is not None:
            self._mapping = self._worker.mapping
            self._inherited = self._worker.inherited
            self._of_the_parent.append(self._worker)
            self._worker = None
        self._inherited = [*(self._inherited or ()), *queued]
        if self._deadline_s is not None:
            self._intake.close()
        self._target.renew()
        self._announcements = Announcements()
        self._starting = threading.RLock()

    # What follows runs in the host's threads.

    def _admit(self, snapshot: Callable[..., bytes | Flaw | None], *entry: object) -> None:
        if self._target.is_off:
            return
        worker = self._worker
        if worker is not None and worker.ident == threading.get_ident():
            return  # an exporter of the host's may log what it likes, also what looks like an entry
        try:
            line = snapshot(*entry)
        except Exception as failure:  # noqa: BLE001, the host's own objects can raise anything when they are written
            line = None
            self._intake.count_malformed(f"it cannot be written as JSON, {type(failure).__name__}")
        else:
            if line is None:
                return
        if isinstance(line, bytes):
            self._intake.put(line)
        elif line is not None:
            self._intake.count_malformed(line)
        if worker is None:
            self._start()
        elif self._intake.is_closed and not self._is_said_closed:
            self._is_said_closed = True
            self._announcements.say("an entry came after the close; it is dropped, and so are those after it")

    def _start(self) -> None:
        # Nobody waits here: whoever comes while another starts the thread has put its entry where that will find it.
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._worker is None and self._deadline_s is None:
                self._worker = Worker(
                    self._intake, self._mapping, self._target.open, self._announcements, self._inherited
                )
                self._inherited = None
                lifetimes.watch_multiprocessing()
                self._worker.start()
        except RuntimeError:  # the interpreter is about to end, and starts no thread any more
            self._intake.abandon()
        finally:
            self._starting.release()


def _snapshot_of_str(entry: str) -> bytes | Flaw | None:
    return snapshot_of_text(entry.encode("utf-8", "surrogatepass"))
