"""The bounded queue between the pump and the worker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from otel_bridge.entries.frame import Direction, Frame, Gap
from otel_bridge.wrapper.feed import Feed
from otel_bridge.wrapper.inlet import Inlet
from otel_bridge.wrapper.records import ServerEnd

PIPE_BYTES = 1 << 16


@pytest.fixture
def pipe() -> Iterator[tuple[Feed, Inlet]]:
    """A feed with room for 100,000 bytes besides those in the pipe, and the worker's end of it."""
    theirs, ours = os.pipe()
    feed = Feed(ours, 100_000)
    yield feed, Inlet(theirs)
    feed.close()
    os.close(theirs)


def frame(number: int, size_bytes: int = 1000) -> Frame:
    """A frame to the client; its number is its time too."""
    return Frame(Direction.TO_CLIENT, number, number, size_bytes, b"x" * size_bytes)


def read_all(feed: Feed, inlet: Inlet) -> list[object]:
    """Everything that is on its way."""
    found: list[object] = []
    while True:
        records = inlet.take()
        feed.flush()
        if not records and not feed.is_waiting:
            return found
        found += records


def test_what_fits_comes_through_in_order(pipe: tuple[Feed, Inlet]) -> None:
    """More than the pipe holds waits in the queue, and nothing of it is lost."""
    feed, inlet = pipe
    told = [frame(number) for number in range(120)]

    for one in told:
        feed.frame(one)

    assert feed.is_waiting
    assert told == read_all(feed, inlet)
    assert feed.dropped_frames == 0


def test_what_does_not_fit_is_dropped_counted_and_told(pipe: tuple[Feed, Inlet]) -> None:
    """The worker learns of the gap, in its place among the frames, once there is room again."""
    feed, inlet = pipe

    for number in range(300):
        feed.frame(frame(number))
    kept = 300 - feed.dropped_frames
    found = read_all(feed, inlet)
    feed.frame(frame(300))
    found += read_all(feed, inlet)

    gap = Gap(Direction.TO_CLIENT, kept, 299, 300 - kept, (300 - kept) * 1000)
    assert feed.dropped_frames > 0
    assert [*map(frame, range(kept)), gap, frame(300)] == found


def test_the_end_is_told_even_if_the_queue_is_full(pipe: tuple[Feed, Inlet]) -> None:
    """With the gap before it, whatever room there is."""
    feed, inlet = pipe

    for number in range(300):
        feed.frame(frame(number))
    feed.tell(ServerEnd(0, 1))

    *_, gap, end = read_all(feed, inlet)
    assert isinstance(gap, Gap)
    assert end == ServerEnd(0, 1)


def test_a_worker_that_is_gone_closes_the_feed() -> None:
    """Nothing is raised, and nothing is kept for nobody."""
    theirs, ours = os.pipe()
    feed = Feed(ours)
    os.close(theirs)

    feed.frame(frame(0))
    feed.frame(frame(1))

    assert not feed.is_open
    assert not feed.is_waiting
