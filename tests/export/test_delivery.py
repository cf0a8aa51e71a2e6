from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from otel_bridge.errors import StateError
from otel_bridge.export.batches import Batch, Limits
from otel_bridge.export.bulletins import Bulletin, BulletinKind
from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.delivery import Delivery, Outcome
from otel_bridge.export.encode import EncodedSpan, RequestEncoder, SpanEncoder
from otel_bridge.export.reply import GrpcReply, HttpReply, NoReply, Reply
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.export.retry import RetryPolicy
from otel_bridge.export.transport import Transport, open_transport
from otel_bridge.testing import CannedReply, Receiver, Request, decode_spans
from tests.export.backends import eventually, grpc_server, raw_server, settings
from tests.export.spans import span

QUICK = RetryPolicy(first_s=0.01, max_s=0.02, misconfigured_max_s=0.02, warn_after_s=0.0, warn_every_s=0.05)
REQUEST = RequestEncoder(Resource({"service.name": "x"}), Scope())


def encoded(numbers: Sequence[int]) -> tuple[EncodedSpan, ...]:
    encoder = SpanEncoder()
    return tuple(encoder.encode(span(number)) for number in numbers)


class FakeTransport:
    """A backend that answers by a function from the numbers of the spans to a reply."""

    endpoint = "http://fake/v1/traces"
    proxy = ""

    def __init__(self, reply_to: Callable[[list[int]], Reply]) -> None:
        self._reply_to = reply_to
        self.delivered: list[int] = []
        self.requests: list[list[int]] = []

    def send(self, body: bytes) -> Reply:
        numbers = [one.span_id for one in decode_spans(body)]
        self.requests.append(numbers)
        reply = self._reply_to(numbers)
        if reply == HttpReply(200):
            self.delivered += numbers
        return reply

    def close(self) -> None:
        pass


class Run:
    """A delivery with everything that it said and committed."""

    def __init__(self, transport: Transport, letters: DeadLetters | None, **given: Any) -> None:
        options: dict[str, Any] = {"policy": QUICK, "max_in_flight": 100, **given}
        self.marks: list[object] = []
        self.bulletins: list[Bulletin] = []
        self.room = threading.Event()
        on_commit = options.pop("on_commit", self.marks.append)
        options.setdefault("on_room", self.room.set)
        self.delivery = Delivery(transport, REQUEST, letters, on_commit, on_bulletin=self.bulletins.append, **options)

    def said(self, kind: BulletinKind) -> list[str]:
        return [bulletin.text for bulletin in self.bulletins if bulletin.kind is kind]


@contextmanager
def running(transport: Transport, letters: DeadLetters | None = None, **options: Any) -> Iterator[Run]:
    run = Run(transport, letters, **options)
    yield run
    run.delivery.close(0.0)


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "dead-letters.jsonl")


def test_in_order(letters: DeadLetters) -> None:
    """Batches reach the backend and marks are committed in the order of their submission, also marks without spans."""
    with Receiver() as receiver, running(open_transport(settings(receiver.endpoint)), letters) as run:
        run.delivery.submit(Batch(encoded([1, 2]), "a"))
        run.delivery.submit(Batch((), "b"))
        run.delivery.submit(Batch(encoded([3]), "c"))
        assert run.delivery.wait_until_done(10)

        assert run.marks == ["a", "b", "c"]
        assert [one.span_id for one in receiver.arrived] == [1, 2, 3]
        assert run.delivery.statistics().delivered_spans == 3
        assert run.bulletins == []
        assert run.room.is_set()


def test_a_large_batch_is_cut() -> None:
    """A batch beyond the limits goes out in several requests, and its mark is committed once, after the last."""
    transport = FakeTransport(lambda _: HttpReply(200))
    with running(transport, limits=Limits(max_spans=10)) as run:
        run.delivery.submit(Batch(encoded(range(1, 26)), "a"))
        assert run.delivery.wait_until_done(10)

    assert [len(numbers) for numbers in transport.requests] == [10, 10, 5]
    assert run.marks == ["a"]


def test_one_poisoned_span_of_500(letters: DeadLetters) -> None:
    """A 400 for one span of 500: that one is a dead letter, the others are delivered, and it can be sent later."""
    is_mended = threading.Event()

    def reply_to(request: Request) -> CannedReply:
        is_poisoned = any(one.span_id == 123 for one in request.spans)
        return CannedReply(400, b"no such unit") if is_poisoned and not is_mended.is_set() else CannedReply()

    with Receiver(reply_to) as receiver:
        transport = open_transport(settings(receiver.endpoint))
        with running(transport, letters) as run:
            run.delivery.submit(Batch(encoded(range(1, 501)), "a"))
            assert run.delivery.wait_until_done(30)

            (stored,) = letters.read().letters
            assert {one.span_id for one in receiver.spans} == set(range(1, 501)) - {123}
            assert (stored.code, stored.reason) == ("HTTP 400", "no such unit")
            assert run.marks == ["a"]
            is_mended.set()
            transport.send(stored.body)
            assert {one.span_id for one in receiver.spans} == set(range(1, 501))
        assert run.said(BulletinKind.REFUSED) == [
            f"{transport.endpoint} refused 1 span: HTTP 400: no such unit; kept among the dead letters"
        ]
        assert run.delivery.statistics().refused_spans == 1


def test_too_large(letters: DeadLetters) -> None:
    """A backend that takes only small requests gets everything, in order; a span that is too large alone is refused."""

    def reply_to(request: Request) -> CannedReply:
        has_giant = any(one.span_id == 7 for one in request.spans)
        return CannedReply(413 if len(request.spans) > 3 or has_giant else 200)

    with Receiver(reply_to) as receiver, running(open_transport(settings(receiver.endpoint)), letters) as run:
        run.delivery.submit(Batch(encoded(range(1, 21)), "a"))
        assert run.delivery.wait_until_done(30)

        assert [one.span_id for one in receiver.spans] == [number for number in range(1, 21) if number != 7]
        assert [one.code for one in letters.read().letters] == ["HTTP 413"]
        assert run.marks == ["a"]


@pytest.mark.parametrize(
    "bad",
    [
        CannedReply(429, headers={"Retry-After": "0"}),
        CannedReply(503, b"busy"),
        CannedReply(502),
        CannedReply(504),
        CannedReply(302, headers={"Location": "http://elsewhere.invalid/"}),
        CannedReply(401),
        CannedReply(403),
        CannedReply(404),
        CannedReply(200, b"<html>", {"Content-Type": "text/html"}),
        CannedReply(hang_up=True),
        CannedReply(delay_s=0.5),
    ],
    ids=lambda bad: f"{bad.status}-{bad.body.decode()}-{bad.hang_up}-{bad.delay_s}",
)
def test_bad_days_that_pass(letters: DeadLetters, bad: CannedReply) -> None:
    """Whatever says nothing against the spans is tried again until it is well; until then no mark moves."""
    is_well = threading.Event()

    def reply_to(_: Request) -> CannedReply:
        return CannedReply() if is_well.is_set() else bad

    environ = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.1"}
    with (
        Receiver(reply_to) as receiver,
        running(open_transport(settings(receiver.endpoint, environ)), letters) as run,
    ):
        run.delivery.submit(Batch(encoded([1, 2]), "a"))
        run.delivery.submit(Batch(encoded([3]), "b"))
        assert eventually(lambda: len(run.said(BulletinKind.TROUBLE)) >= 2)
        during = run.delivery.statistics()
        assert run.marks == []
        is_well.set()
        assert run.delivery.wait_until_done(20)

        assert run.marks == ["a", "b"]
        assert {one.span_id for one in receiver.spans} == {1, 2, 3}
        assert letters.read().letters == ()
        assert (during.in_flight_batches, during.in_flight_spans, during.delivered_spans) == (2, 3, 0)
        assert during.trouble
        assert run.delivery.statistics().trouble == ""
        assert eventually(lambda: len(run.said(BulletinKind.RECOVERED)) == 1)


def test_half_an_answer(letters: DeadLetters) -> None:
    """A connection that closes half way through the answer is no delivery."""
    with (
        raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") as port,
        running(open_transport(settings(f"http://127.0.0.1:{port}")), letters) as run,
    ):
        run.delivery.submit(Batch(encoded([1]), "a"))
        assert eventually(lambda: bool(run.said(BulletinKind.TROUBLE)))
        outcome = run.delivery.close(0.0)

    assert run.marks == []
    assert outcome == Outcome(0, 0, 0, 1, 1, "the connection was closed in the middle of the answer")


def test_unknown_host(letters: DeadLetters) -> None:
    """A host name that cannot be found waits; the stop does not wait for it."""
    with running(open_transport(settings("http://no-such-host.invalid:4318")), letters) as run:
        run.delivery.submit(Batch(encoded([1]), "a"))
        assert eventually(lambda: "cannot be found" in run.delivery.statistics().trouble)

    assert run.marks == []


def test_partial_success(letters: DeadLetters) -> None:
    """After a partial success the mark moves, nothing is sent again, and a letter keeps the batch and the count."""
    body = b"\x0a\x07\x08\x01\x12\x03old"
    with Receiver([CannedReply(200, body)]) as receiver:
        with running(open_transport(settings(receiver.endpoint)), letters) as run:
            run.delivery.submit(Batch(encoded([1, 2, 3]), "a"))
            assert run.delivery.wait_until_done(10)

        (stored,) = letters.read().letters
        assert (stored.refused_count, stored.span_count, stored.code) == (1, 3, "partial success")
        assert len(receiver.requests) == 1
        statistics = run.delivery.statistics()
        assert (statistics.delivered_spans, statistics.refused_spans) == (2, 1)
        assert run.marks == ["a"]


def test_warning() -> None:
    """A partial success that refuses nothing is a delivery, and its message is shown."""
    with (
        Receiver([CannedReply(200, b"\x0a\x06\x12\x04slow")]) as receiver,
        running(open_transport(settings(receiver.endpoint))) as run,
    ):
        run.delivery.submit(Batch(encoded([1]), "a"))
        assert run.delivery.wait_until_done(10)

    assert run.marks == ["a"]
    assert run.said(BulletinKind.WARNING)[0].endswith("took the spans but says: slow")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.UNAVAILABLE, "waits"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "waits"),
        (grpc.StatusCode.INVALID_ARGUMENT, "refused"),
    ],
)
def test_grpc(letters: DeadLetters, code: grpc.StatusCode, expected: str) -> None:
    """The same over gRPC: what may pass is sent again, what is held against a span makes a letter of it."""
    is_well = threading.Event()
    arrived: list[int] = []

    def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
        numbers = [one.span_id for one in decode_spans(body)]
        if 2 in numbers and not is_well.is_set():
            context.abort(code, "no")
        arrived.extend(numbers)
        return b""

    with grpc_server(answer) as target:
        transport = open_transport(settings(f"http://{target}", protocol="grpc"))
        with running(transport, letters) as run:
            run.delivery.submit(Batch(encoded([1, 2, 3, 4]), "a"))
            if expected == "waits":
                assert eventually(lambda: bool(run.said(BulletinKind.TROUBLE)))
                assert run.marks == []
                is_well.set()
            assert run.delivery.wait_until_done(20)

    assert run.marks == ["a"]
    assert sorted(arrived) == ([1, 2, 3, 4] if expected == "waits" else [1, 3, 4])
    assert [one.code for one in letters.read().letters] == ([] if expected == "waits" else [f"gRPC {code.name}"])


def test_room() -> None:
    """No more than the given number of batches is in the air, and room is told as soon as one is done."""
    is_well = threading.Event()
    transport = FakeTransport(lambda _: HttpReply(200) if is_well.is_set() else NoReply("down"))
    with running(transport, max_in_flight=2) as run:
        assert run.delivery.wait_for_room(0.0)
        for number in (1, 2):
            run.delivery.submit(Batch(encoded([number]), number))
        assert not run.delivery.has_room()
        assert not run.delivery.wait_for_room(0.01)
        with pytest.raises(RuntimeError, match="without room"):
            run.delivery.submit(Batch(encoded([3]), 3))
        is_well.set()
        assert run.delivery.wait_for_room(10)
        assert run.room.wait(10)


def test_state_that_cannot_be_written() -> None:
    """A commit that fails for a full disk is tried again, said, and holds back every later mark."""
    failures = 3
    marks: list[object] = []

    def on_commit(mark: object) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StateError("cannot write the state: disk full", "free some space")
        marks.append(mark)

    transport = FakeTransport(lambda _: HttpReply(200))
    with running(transport, on_commit=on_commit) as run:
        run.delivery.submit(Batch(encoded([1]), "a"))
        run.delivery.submit(Batch(encoded([2]), "b"))
        assert run.delivery.wait_until_done(10)

    assert marks == ["a", "b"]
    assert transport.delivered == [1, 2]
    assert "disk full; free some space" in run.said(BulletinKind.TROUBLE)[0]


def test_letters_that_cannot_be_written(tmp_path: Path) -> None:
    """A mark does not pass a refusal that could not be kept."""
    tmp_path.joinpath("dead-letters.jsonl").mkdir()
    letters = DeadLetters(tmp_path / "dead-letters.jsonl")
    with running(FakeTransport(lambda _: HttpReply(400)), letters) as run:
        run.delivery.submit(Batch(encoded([1]), "a"))
        assert eventually(lambda: bool(run.said(BulletinKind.TROUBLE)))
        assert run.marks == []
        letters.path.rmdir()
        assert run.delivery.wait_until_done(10)

    assert run.marks == ["a"]
    assert len(letters.read().letters) == 1


def test_letters_that_are_full(tmp_path: Path) -> None:
    """Refused spans beyond the bound are counted as lost, and the bound is named."""
    letters = DeadLetters(tmp_path / "dead-letters.jsonl", max_bytes=10)
    with running(FakeTransport(lambda _: HttpReply(400)), letters) as run:
        run.delivery.submit(Batch(encoded([1, 2]), "a"))
        assert run.delivery.wait_until_done(10)

    assert run.delivery.statistics().lost_spans == 2
    assert "2 not kept, the dead letters are full (10 bytes)" in run.said(BulletinKind.REFUSED)[0]
    assert run.marks == ["a"]


def test_without_letters() -> None:
    """Where nothing is kept, refused spans are counted as lost and named."""
    with running(FakeTransport(lambda _: HttpReply(400))) as run:
        run.delivery.submit(Batch(encoded([1]), "a"))
        assert run.delivery.wait_until_done(10)

    statistics = run.delivery.statistics()
    assert (statistics.refused_spans, statistics.lost_spans) == (1, 1)
    assert statistics.last_error == "HTTP 400: no reason given"
    assert run.said(BulletinKind.REFUSED)[0].endswith("HTTP 400: no reason given; not kept")


def test_a_mistake_of_the_caller_is_raised() -> None:
    """An exception that nobody expects ends the delivery and comes out of the next call, not into a log."""

    def on_commit(_: object) -> None:
        raise KeyError("mistake")

    run = Run(FakeTransport(lambda _: HttpReply(200)), None, on_commit=on_commit)
    run.delivery.submit(Batch((), "a"))

    with pytest.raises(KeyError, match="mistake"):
        run.delivery.wait_until_done(10)
    with pytest.raises(KeyError, match="mistake"):
        run.delivery.has_room()
    with pytest.raises(KeyError, match="mistake"):
        run.delivery.close()


def test_close_finishes() -> None:
    """A stop waits for what is in the air, within its deadline."""

    def reply_to(_: list[int]) -> Reply:
        assert eventually(lambda: run.delivery._deadline_s is not None)
        return HttpReply(200)

    run = Run(FakeTransport(reply_to), None)
    for number in (1, 2, 3):
        run.delivery.submit(Batch(encoded([number]), number))

    assert run.delivery.close(10.0) == Outcome(3, 0, 0, 0, 0)
    assert run.marks == [1, 2, 3]
    with pytest.raises(RuntimeError):
        run.delivery.submit(Batch((), 4))


def test_close_gives_a_last_try() -> None:
    """A stop during a wait tries once more at once, since the backend may be well by now."""
    is_well = threading.Event()
    transport = FakeTransport(lambda _: HttpReply(200) if is_well.is_set() else NoReply("down"))
    run = Run(transport, None, policy=RetryPolicy(first_s=1000.0, max_s=1000.0))
    run.delivery.submit(Batch(encoded([1]), 1))
    assert eventually(lambda: run.delivery.statistics().trouble == "down")
    is_well.set()

    assert run.delivery.close(10.0).left_spans == 0


@pytest.mark.parametrize("reply", [NoReply("down"), HttpReply(401), HttpReply(429, retry_after="3600")])
def test_close_does_not_wait_in_vain(reply: Reply) -> None:
    """A stop leaves what cannot be delivered before the deadline, and says how much and why."""
    transport = FakeTransport(lambda _: reply)
    run = Run(transport, None, policy=RetryPolicy(first_s=1000.0, max_s=1000.0, misconfigured_max_s=1000.0))
    run.delivery.submit(Batch(encoded([1, 2]), 1))
    run.delivery.submit(Batch(encoded([3]), 2))
    assert eventually(lambda: bool(run.delivery.statistics().trouble))

    outcome = run.delivery.close(100.0)

    assert (outcome.left_spans, outcome.left_batches) == (3, 2)
    assert outcome.reason
    assert run.marks == []
    if reply == HttpReply(429, retry_after="3600"):
        assert len(transport.requests) == 1


def test_nothing_is_committed_after_close() -> None:
    """An answer that comes after the deadline moves no mark: the caller may have closed its state."""
    go, is_sending = threading.Event(), threading.Event()

    def reply_to(_: list[int]) -> Reply:
        is_sending.set()
        go.wait(10)
        return HttpReply(200)

    run = Run(FakeTransport(reply_to), None)
    run.delivery.submit(Batch(encoded([1]), 1))
    assert is_sending.wait(10)
    outcome = run.delivery.close(0.0)
    go.set()
    run.delivery._thread.join(10)

    assert not run.delivery._thread.is_alive()
    assert outcome == Outcome(0, 0, 0, 1, 1, "no answer before the deadline")
    assert run.marks == []


def test_a_long_wait_is_no_silence() -> None:
    """While a backend asks for an hour, the trouble is said again and again."""
    transport = FakeTransport(lambda _: HttpReply(429, retry_after="3600"))
    with running(transport) as run:
        run.delivery.submit(Batch(encoded([1]), 1))
        assert eventually(lambda: len(run.said(BulletinKind.TROUBLE)) >= 3)

    assert len(transport.requests) == 1


def test_late_counts_are_said_without_news() -> None:
    """What was counted within a minute is said when it is over, also when nothing else happens."""
    with running(FakeTransport(lambda _: HttpReply(400))) as run:
        for number in (1, 2):
            run.delivery.submit(Batch(encoded([number]), number))
        assert eventually(lambda: len(run.said(BulletinKind.REFUSED)) == 2)


REPLIES = st.sampled_from(
    [
        HttpReply(200),
        HttpReply(503),
        HttpReply(401),
        NoReply("reset"),
        HttpReply(413),
        HttpReply(400),
        GrpcReply("RESOURCE_EXHAUSTED"),
    ]
)


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.lists(REPLIES, max_size=25), st.integers(1, 5))
def test_any_order_of_replies(sizes: list[int], replies: list[Reply], max_spans: int) -> None:
    """Whatever a backend answers and in which order: each span is delivered or refused once, marks come in order."""
    rest = iter(replies)
    transport = FakeTransport(lambda _: next(rest, HttpReply(200)))
    policy = RetryPolicy(first_s=0.0, max_s=0.0, misconfigured_max_s=0.0)
    numbers = iter(range(1, 1000))
    batches = [[next(numbers) for _ in range(size)] for size in sizes]
    with running(transport, limits=Limits(max_spans=max_spans), policy=policy) as run:
        for mark, batch in enumerate(batches):
            run.delivery.submit(Batch(encoded(batch), mark))
        assert run.delivery.wait_until_done(20)
        statistics = run.delivery.statistics()

    assert run.marks == list(range(len(batches)))
    assert transport.delivered == sorted(set(transport.delivered))
    assert statistics.delivered_spans == len(transport.delivered)
    assert statistics.delivered_spans + statistics.refused_spans == sum(sizes)
