"""Delivery: batches go out one after the other, and a mark moves only on the backend's word.

    submit ──▶ queue (bounded) ──▶ cut into requests ──▶ send ──▶ verdict ──▶ dead letters ──▶ commit
                                        ▲                            │
                                        └── wait, halve, try again ──┘

One thread sends and commits, so marks come in the order of the batches. A failure never ends it: what the backend
cannot take now waits for ever, and since the queue is bounded, reading waits with it.
"""

from __future__ import annotations

import random as random_module
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from otel_bridge.errors import StateError
from otel_bridge.export.batches import Batch, Limits, Sending
from otel_bridge.export.bulletins import Bulletin, Bulletins
from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.encode import RequestEncoder
from otel_bridge.export.outcome import Outcome as Outcome
from otel_bridge.export.outcome import Statistics as Statistics
from otel_bridge.export.retry import Backoff, RetryPolicy
from otel_bridge.export.transport import Transport
from otel_bridge.export.verdict import Delivered, Misconfigured, TooLarge, TryLater, Verdict, is_silence, judge


@dataclass(frozen=True, slots=True)
class _InTheAir:
    batch: Batch
    since_s: float


_Trouble = TryLater | Misconfigured | TooLarge


class Delivery:
    """Takes batches and answers for each of them.

    `on_commit(mark)` is called once a batch, in order, always by the delivery's own thread; it may raise `StateError`
    (a full disk), then it is called again later. `on_room()` is called by that thread whenever a batch is done, and
    `on_bulletin` with what people should know. `dead_letters` None means that refused spans are only counted.
    `clock` counts seconds; `random` gives numbers from 0 to 1.

    An exception that is none of the expected ones ends the thread and is raised by the next call of any method.
    """

    def __init__(
        self,
        transport: Transport,
        request: RequestEncoder,
        dead_letters: DeadLetters | None,
        on_commit: Callable[[object], None],
        *,
        on_bulletin: Callable[[Bulletin], None],
        on_room: Callable[[], None] = lambda: None,
        limits: Limits | None = None,
        policy: RetryPolicy | None = None,
        max_in_flight: int = 4,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._transport = transport
        self._request = request
        self._dead_letters = dead_letters
        self._on_commit = on_commit
        self._on_bulletin = on_bulletin
        self._on_room = on_room
        self._limits = limits or Limits()
        self._max_in_flight = max_in_flight
        self._clock = clock
        policy = policy or RetryPolicy()
        self._backoff = Backoff(policy, random)
        self._bulletins = Bulletins(transport.endpoint, policy)

        self._changed = threading.Condition()
        self._in_the_air: deque[_InTheAir] = deque()
        self._delivered_spans = self._refused_spans = self._lost_spans = 0
        self._settled_spans = 0  # of the oldest batch in the air
        self._needs_action = False
        self._last_error = ""
        self._was_answered = False
        self._deadline_s: float | None = None  # set by close
        self._is_over = False
        self._failure: BaseException | None = None
        # Held while a letter or a mark is written, so that none is once close has returned.
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()

    def has_room(self) -> bool:
        """Whether a batch can be submitted now."""
        with self._changed:
            self._check()
            return len(self._in_the_air) < self._max_in_flight

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until a batch can be submitted; False if that took longer than `timeout_s`."""
        return self._wait_until(lambda: len(self._in_the_air) < self._max_in_flight, timeout_s)

    def wait_until_done(self, timeout_s: float) -> bool:
        """Wait until nothing is in the air; False if that took longer than `timeout_s`."""
        return self._wait_until(lambda: not self._in_the_air, timeout_s)

    def submit(self, batch: Batch) -> None:
        """Send `batch` as soon as those before it are done. Raises RuntimeError without room or after `close`."""
        with self._changed:
            self._check()
            if len(self._in_the_air) >= self._max_in_flight or self._deadline_s is not None:
                raise RuntimeError("a batch was submitted without room for it")
            self._in_the_air.append(_InTheAir(batch, self._clock()))
            self._changed.notify_all()

    def statistics(self) -> Statistics:
        """The numbers of this moment."""
        with self._changed:
            return Statistics(
                delivered_spans=self._delivered_spans,
                refused_spans=self._refused_spans,
                lost_spans=self._lost_spans,
                in_flight_batches=len(self._in_the_air),
                in_flight_spans=self._waiting_spans(),
                lag_s=self._lag_s(),
                trouble=self._bulletins.trouble,
                needs_action=self._needs_action and bool(self._bulletins.trouble),
                last_error=self._last_error,
            )

    def close(self, deadline_s: float = 5.0) -> Outcome:
        """Finish what is in the air within `deadline_s` seconds; after it returned nothing is committed any more.

        It does not wait for what only a person can mend, nor for a retry that is due after the deadline.
        """
        with self._changed:
            self._deadline_s = self._clock() + deadline_s
            self._changed.notify_all()
        self._thread.join(deadline_s)
        with self._writing:
            self._is_over = True
        self._transport.close()
        self._say(is_last=True)
        with self._changed:
            self._check()
            left_batches = len(self._in_the_air)
            return Outcome(
                delivered_spans=self._delivered_spans,
                refused_spans=self._refused_spans,
                lost_spans=self._lost_spans,
                left_spans=self._waiting_spans(),
                left_batches=left_batches,
                reason=(self._bulletins.trouble or self._why_unfinished()) if left_batches else "",
                was_answered=self._was_answered and left_batches > 0,
            )

    # What follows runs in the delivery's thread.

    def _run(self) -> None:
        try:
            while (flying := self._next()) is not None and self._finish(flying):
                with self._changed:
                    self._in_the_air.popleft()
                    self._settled_spans = 0
                    self._changed.notify_all()
                self._on_room()
        except BaseException as failure:  # noqa: BLE001, it is raised in the thread that uses this object
            with self._changed:
                self._failure = failure
                self._changed.notify_all()
            self._on_room()

    def _next(self) -> _InTheAir | None:
        """The oldest batch in the air, when there is one; None when the delivery was closed and nothing is left."""
        while True:
            self._say()
            with self._changed:
                if self._in_the_air:
                    return self._in_the_air[0]
                if self._deadline_s is not None:
                    return None
                next_s = self._bulletins.next_s()
                self._changed.wait(None if next_s is None else max(0.0, next_s - self._clock()))

    def _finish(self, flying: _InTheAir) -> bool:
        """Bring one batch to its end; False if it has to be left for the next start."""
        sending = Sending(flying.batch.spans, self._limits)
        while part := sending.part:
            reply = self._transport.send(self._request.encode(part))
            self._was_answered = not is_silence(reply)
            verdict = judge(reply)
            trouble = self._settle(sending, verdict)
            if trouble is not None and not self._wait_to_retry(trouble):
                return False
        return self._write(lambda: self._bury(sending)) and self._write(lambda: self._on_commit(flying.batch.mark))

    def _settle(self, sending: Sending, verdict: Verdict) -> _Trouble | None:
        """Take a verdict into account; returns it if the same part has to be sent again."""
        with self._changed:
            delivered_before, settled_before = sending.delivered_spans, sending.settled_spans
            must_wait = sending.settle(verdict, time.time())
            self._delivered_spans += sending.delivered_spans - delivered_before
            self._settled_spans = sending.settled_spans
            if must_wait:
                assert isinstance(verdict, TryLater | Misconfigured | TooLarge)
                reason = f"{verdict.code}: {verdict.reason}" if isinstance(verdict, TooLarge) else verdict.reason
                self._fail(reason, needs_action=isinstance(verdict, Misconfigured))
                return verdict
            if sending.settled_spans > settled_before:
                self._backoff.reset()
                self._bulletins.succeed()
            if isinstance(verdict, Delivered) and verdict.warning:
                self._bulletins.warn(verdict.warning)
            return None

    def _fail(self, reason: str, *, needs_action: bool) -> None:
        self._last_error = reason
        self._needs_action = needs_action
        self._bulletins.fail(reason, self._clock(), needs_action=needs_action)

    def _write(self, write: Callable[[], None]) -> bool:
        """Call `write` until the state takes it; False if the delivery is over before."""
        while True:
            with self._writing:
                if self._is_over:
                    return False
                try:
                    write()
                except StateError as error:
                    trouble = Misconfigured(str(error))
                else:
                    return True
            with self._changed:
                self._fail(trouble.reason, needs_action=True)
            if not self._wait_to_retry(trouble):
                return False

    def _bury(self, sending: Sending) -> None:
        """Put what was refused among the dead letters and count it. Raises StateError if they cannot be written."""
        letters = sending.letters
        if not letters:
            return
        kept = self._dead_letters.add(letters, self._request) if self._dead_letters else [False] * len(letters)
        refused = sum(letter.refused_count for letter in letters)
        lost = sum(letter.refused_count for letter, is_kept in zip(letters, kept, strict=True) if not is_kept)
        reason = f"{letters[-1].code}: {letters[-1].reason}"
        if self._dead_letters is None:
            fate = "not kept"
        elif lost:
            fate = f"{lost:,} not kept, the dead letters are full ({self._dead_letters.max_bytes:,} bytes)"
        else:
            fate = "kept among the dead letters"
        with self._changed:
            self._refused_spans += refused
            self._lost_spans += lost
            self._last_error = reason
            self._bulletins.refuse(refused, f"{reason}; {fate}")

    def _wait_to_retry(self, trouble: _Trouble) -> bool:
        """Wait as long as this failure asks for; False if the delivery is closed and waiting makes no sense."""
        with self._changed:
            was_closed = self._deadline_s is not None
            retry_s = self._clock() + self._backoff.next_s(trouble)
        is_asked = isinstance(trouble, TryLater) and trouble.after_s is not None
        while True:
            self._say()
            with self._changed:
                if (now_s := self._clock()) >= retry_s:
                    return True
                if self._deadline_s is not None:
                    if not was_closed and not is_asked:
                        return True  # one more try at once: it may be well by now
                    if isinstance(trouble, Misconfigured) or retry_s > self._deadline_s:
                        return False
                next_s = self._bulletins.next_s()
                until_s = retry_s if next_s is None else min(retry_s, next_s)
                self._changed.wait(max(0.0, until_s - now_s))

    def _say(self, *, is_last: bool = False) -> None:
        # The callback is called without the lock: it may write to a terminal that somebody holds.
        with self._changed:
            due = self._bulletins.take(self._clock(), self._waiting_spans(), self._lag_s(), is_last=is_last)
        for bulletin in due:
            self._on_bulletin(bulletin)

    # What follows needs the lock.

    def _why_unfinished(self) -> str:
        return "the time was up before all was answered" if self._was_answered else "no answer before the deadline"

    def _waiting_spans(self) -> int:
        return sum(len(flying.batch.spans) for flying in self._in_the_air) - self._settled_spans

    def _lag_s(self) -> float:
        return self._clock() - self._in_the_air[0].since_s if self._in_the_air else 0.0

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or condition(), timeout_s)
            self._check()
            return condition()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
