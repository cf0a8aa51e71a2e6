"""One direction of the pipe: nothing changed, nothing waited for, ends closed as they would be without us."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from otel_bridge.entries.frame import Direction
from otel_bridge.wrapper.lane import Lane


@dataclass
class Ends:
    """A lane with the far ends of its two pipes."""

    lane: Lane
    writer: int
    reader: int

    def pump(self) -> None:
        """Moves what there is."""
        while self.lane.source >= 0 and not self.lane.is_pending and _is_ready(self.lane.source):
            self.lane.read()
            self.lane.write()

    def read(self) -> bytes:
        """What has arrived, or a part of it: the reader is slow."""
        return os.read(self.reader, 5_000) if _is_ready(self.reader) else b""


def _is_ready(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


@pytest.fixture(params=[False, True], ids=["own target", "shared target"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """A lane between two pipes."""
    source, writer = os.pipe()
    reader, target = os.pipe()
    made = Ends(Lane(Direction.TO_CLIENT, source, target, is_shared=request.param), writer, reader)
    yield made
    made.lane.abandon()
    for descriptor in (made.writer, made.reader):
        if descriptor >= 0:
            os.close(descriptor)


def test_bytes_arrive_as_they_are(ends: Ends) -> None:
    """Whatever they are."""
    os.write(ends.writer, bytes(range(256)) + b"\n\r\n")
    ends.pump()

    assert ends.read() == bytes(range(256)) + b"\n\r\n"


def test_a_slow_reader_stops_the_reading(ends: Ends) -> None:
    """What was read is kept until it is taken; no more is read meanwhile, so memory stays flat."""
    os.set_blocking(ends.writer, False)
    sent = 0
    for _ in range(100):
        try:
            sent += os.write(ends.writer, b"x" * 10_000)
        except BlockingIOError:
            ends.pump()

    assert ends.lane.is_pending
    assert sent < 300_000
    got = b""
    while len(got) < sent:
        got += ends.read()
        ends.lane.write()
        ends.pump()
    assert got == b"x" * sent


def test_the_end_of_the_input_is_passed_on(ends: Ends) -> None:
    """After all that came before it."""
    os.write(ends.writer, b"last words")
    os.close(ends.writer)
    ends.writer = -1
    ends.pump()

    assert ends.read() == b"last words"
    assert os.read(ends.reader, 1) == b""
    assert ends.lane.is_over


def test_a_reader_that_is_gone_is_passed_back(ends: Ends) -> None:
    """Whoever writes learns of it by the error that it would have got without us."""
    os.close(ends.reader)
    ends.reader = -1
    os.write(ends.writer, b"for nobody")
    ends.pump()

    assert ends.lane.is_over
    with pytest.raises(BrokenPipeError):
        os.write(ends.writer, b"more")
