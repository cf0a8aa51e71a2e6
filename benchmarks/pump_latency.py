"""What `otel-bridge run` adds to a frame.

A client plays ping-pong with a server that echoes (`cat`): directly and through the wrapper, in turns, so that both
see the same machine. The frames are tool calls, one after the other without a pause, so the worker beside the pump is
busy all the time: it maps and exports every one of them. Half of the difference of the round trips is what one frame,
which passes the pump once in each direction, is delayed by. The target is a median below 0.2 ms.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.report import Plan, Row
from otel_bridge.testing import Receiver

ROUNDS = 5
TARGET_MS = 0.2
ECHO = ("cat",)


@dataclass(frozen=True)
class Trips:
    """Round trips of frames, in nanoseconds."""

    round_trips_ns: list[int]

    @property
    def median_ms(self) -> float:
        """The median round trip."""
        return statistics.median(self.round_trips_ns) / 1e6


def frame(number: int) -> bytes:
    """A tool call of usual size."""
    arguments = {"sessionId": "5f1c9a53-5d0e-4a47-9a0c-3f4c1a6f0f11", "expression": f"total + {number} * len(values)"}
    params = {"name": "evaluate_expression", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def play(command: Sequence[str], frames: int, is_warm: Callable[[], bool] = lambda: True) -> Trips:
    """Sends frames one by one, each when the one before is back; those before `is_warm` do not count."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        write, read = process.stdin.fileno(), process.stdout.fileno()
        trips: list[int] = []
        number = 0
        while len(trips) < frames:
            number += 1
            data = frame(number)
            before_ns = time.perf_counter_ns()
            os.write(write, data)
            back = 0
            while back < len(data):
                back += len(os.read(read, 1 << 16))
            after_ns = time.perf_counter_ns()
            if trips or (number > frames // 10 and is_warm()):
                trips.append(after_ns - before_ns)
        process.stdin.close()
    return Trips(trips)


@dataclass(frozen=True)
class Latency:
    """What was measured: medians over the rounds, in ms; `added_ms` is for one frame."""

    direct: list[Trips]
    through: list[Trips]

    @property
    def added_ms(self) -> float:
        """What the wrapper adds to a frame."""
        pairs = zip(self.direct, self.through, strict=True)
        return statistics.median((through.median_ms - direct.median_ms) / 2 for direct, through in pairs)


def compare(frames: int, rounds: int = ROUNDS) -> Latency:
    """Plays both ways in turns."""
    direct, through = [], []
    with Receiver() as receiver, tempfile.TemporaryDirectory() as state:
        words = ["--endpoint", receiver.endpoint, "--state-dir", state]
        wrapped = [sys.executable, "-P", "-m", "otel_bridge", "run", *words, "--", *ECHO]
        for _ in range(rounds):
            direct.append(play(ECHO, frames))
            through.append(play(wrapped, frames, _new_requests(receiver)))
        return Latency(direct, through)


def _new_requests(receiver: Receiver) -> Callable[[], bool]:
    """Whether anything more has arrived: a worker takes as long to start as many frames take, and is to be at work."""
    before = len(receiver.requests)
    return lambda: len(receiver.requests) > before


def measure(plan: Plan) -> Iterator[Row]:
    """As rows of the table that `python -m benchmarks` prints."""
    plan.say("pump_latency: ping-pong, directly and through the wrapper")
    found = compare(plan.choose(10_000, 500), plan.choose(ROUNDS, 1))
    yield Row("`otel-bridge run`: added to a frame, its worker busy", "ms", found.added_ms, most=TARGET_MS)
