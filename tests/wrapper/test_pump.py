"""The pump inside this process: what a server echoes comes back unchanged, and its frames are told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.wrapper.child import Child
from otel_bridge.wrapper.feed import Feed
from otel_bridge.wrapper.frames import FrameCutter
from otel_bridge.wrapper.inlet import Inlet
from otel_bridge.wrapper.pump import Pump
from otel_bridge.wrapper.records import Record, ServerEnd
from otel_bridge.wrapper.signals import Signals
from otel_bridge.wrapper.stderr import Stderr


@dataclass
class Passed:
    """What came of a run of the pump."""

    output: bytes
    exit_code: int
    records: list[Record]


def pumped(command: Sequence[str], chunks: Sequence[bytes]) -> Passed:
    """Runs the pump in this thread, with a client that writes the chunks one by one, closes, and reads to the end."""
    client_in, to_pump = os.pipe()
    from_pump, client_out = os.pipe()
    worker, ours = os.pipe()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD,)}
    output: list[bytes] = []
    records: list[Record] = []

    def write() -> None:
        for chunk in chunks:
            with memoryview(chunk) as rest:
                sent = 0
                while sent < len(rest):
                    sent += os.write(to_pump, rest[sent:])
        os.close(to_pump)

    def read() -> None:
        while data := os.read(from_pump, 1 << 16):
            output.append(data)
        os.close(from_pump)

    def work() -> None:
        inlet = Inlet(worker)
        while not inlet.is_over:
            inlet.wait(1.0)
            records.extend(inlet.take())
        os.close(worker)

    threads = [threading.Thread(target=target) for target in (write, read, work)]
    for thread in threads:
        thread.start()
    signals = Signals(())
    feed = Feed(ours)
    child = Child.start(command)
    try:
        exit_code = Pump(child, feed, signals, Stderr(), client_in, client_out).run()
    finally:
        while feed.is_waiting:
            feed.flush()
        feed.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signals.close()
        for thread in threads:
            thread.join()
        child.process.wait()
    return Passed(b"".join(output), exit_code, records)


def frames_of(direction: Direction, data: bytes) -> list[tuple[int, int, bytes | None]]:
    """The frames of a whole stream."""
    return [(one.number, one.size_bytes, one.data) for one in FrameCutter(direction).feed(data, 0)]


messages = st.one_of(
    st.binary(max_size=200),
    st.just(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n'),
    st.integers(1, 200_000).map(lambda size: b"m" * size + b"\n"),
)


@settings(max_examples=25, deadline=None)
@given(chunks=st.lists(messages, max_size=8))
def test_what_is_echoed_comes_back_unchanged(chunks: list[bytes]) -> None:
    """However the client cuts its writes; and the worker is told of every frame of both directions."""
    sent = b"".join(chunks)

    passed = pumped(["cat"], [chunk for chunk in chunks if chunk])

    assert passed.output == sent
    assert passed.exit_code == 0
    told = [record for record in passed.records if isinstance(record, Frame)]
    for direction in Direction:
        found = [(one.number, one.size_bytes, one.data) for one in told if one.direction is direction]
        assert found == frames_of(direction, sent)
    assert isinstance(passed.records[-1], ServerEnd)


def test_fifty_megabytes_in_one_frame() -> None:
    """They pass both ways, and only their size is told."""
    sent = bytes(range(32, 122)) * 600_000 + b"\n"

    passed = pumped(["cat"], [sent])

    assert passed.output == sent
    told = [record for record in passed.records if isinstance(record, Frame)]
    assert [(one.direction, one.size_bytes, one.data) for one in told] == [
        (Direction.TO_SERVER, 54_000_000, None),
        (Direction.TO_CLIENT, 54_000_000, None),
    ]


def test_all_output_of_a_server_that_ends_is_passed_on() -> None:
    """It may write much and exit without reading anything."""
    script = "import sys; sys.stdout.buffer.write(b'x' * 3_000_000); sys.exit(5)"

    passed = pumped([sys.executable, "-c", script], [b"never read\n"])

    assert passed.output == b"x" * 3_000_000
    assert passed.exit_code == 5
    assert isinstance(passed.records[-1], ServerEnd)
    assert passed.records[-1].exit_code == 5
