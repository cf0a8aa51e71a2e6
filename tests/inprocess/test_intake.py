"""The bounded queue between a host's threads and the bridge's."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.flaw import Flaw
from otel_bridge.inprocess import intake as module
from otel_bridge.inprocess.intake import Intake

ACTIONS = st.lists(st.sampled_from(["put", "put", "put", "take", "malformed", "settle", "close"]), max_size=40)


@given(actions=ACTIONS, room=st.integers(1, 5))
def test_every_line_is_queued_taken_or_counted(actions: list[str], room: int) -> None:
    """Lines come out in the order they went in; none is lost without a count."""
    intake = Intake(room)
    expected: list[bytes] = []
    taken: list[bytes] = []
    dropped = malformed = 0
    is_closed = False
    for number, action in enumerate(actions):
        match action:
            case "put":
                line = str(number).encode()
                if is_closed or len(expected) - len(taken) >= room:
                    dropped += 1
                else:
                    expected.append(line)
                intake.put(line)
            case "take":
                taken += intake.take(2)
            case "malformed":
                malformed += 1
                intake.count_malformed(Flaw.NO_TIME)
            case "settle":
                intake.settle()
            case "close":
                is_closed = True
                intake.close()
    counts = intake.counts()

    assert taken == expected[: len(taken)]
    assert (counts.accepted, counts.queued) == (len(expected), len(expected) - len(taken))
    assert (counts.dropped, counts.malformed) == (dropped, malformed)
    assert taken + intake.take(100) == expected


def test_the_room_is_counted_in_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few huge entries fill it; what is taken makes room again."""
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    intake = Intake(1000)
    for _ in range(3):
        intake.put(b"x" * 40)
    before = intake.counts()
    intake.take(1)
    intake.put(b"x" * 40)

    assert (before.queued, before.dropped) == (2, 1)
    assert (intake.counts().queued, intake.counts().dropped) == (2, 1)


def test_waiting_ends_when_what_was_there_is_settled() -> None:
    """Later lines are no reason to wait longer."""
    intake = Intake(10)
    intake.put(b"1")
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(intake.wait_until_settled(20)))
    waiter.start()
    assert intake.wait(10)
    while not intake.is_urgent:
        intake.linger(0.01, 0.01)
    intake.take(1)
    intake.put(b"2")
    intake.settle()
    waiter.join()

    assert answers == [True]
    assert not Intake(1).is_urgent
    assert Intake(1).wait_until_settled(0)


def test_waiting_in_vain_says_so() -> None:
    """Nobody takes what is queued before the timeout, or before the close."""
    intake = Intake(10)
    intake.put(b"1")

    assert not intake.wait_until_settled(0.01)
    intake.close()
    assert not intake.wait_until_settled(20)


def test_lingering_ends_when_half_of_the_room_is_taken() -> None:
    """A burst is not let to fill the queue."""
    intake = Intake(2)
    intake.put(b"1")
    intake.linger(3600, 3600)

    assert not intake.is_closed


def test_what_is_abandoned_is_dropped() -> None:
    """Lines that nobody will take any more are counted."""
    intake = Intake(10)
    intake.put(b"1")
    intake.put(b"2")
    intake.take(1)
    intake.abandon()

    assert (intake.counts().queued, intake.counts().dropped) == (0, 1)


def test_many_threads_lose_no_count() -> None:
    """Whoever puts, every line is accepted or dropped."""
    intake = Intake(1000)

    def put_many() -> None:
        for _ in range(500):
            intake.put(b"x")

    threads = [threading.Thread(target=put_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (intake.counts().accepted, intake.counts().dropped) == (1000, 1000)
