"""What it costs to wait: one log with one open session, and nothing is written for more than a minute.

Several of each kind wait at the same time, each with a log of its own: over HTTP and over gRPC to one real Jaeger, and
filelog. What is told is the median of a kind. Afterwards two lines are written to each log, one after the other; the
time until the backend has acknowledged what they say is an upper limit of when the first was seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.filelog import sending
from benchmarks.live_log import LiveLog
from benchmarks.processes import cpu_s, resident_bytes
from benchmarks.recorder import Recorder, mark, recorder
from benchmarks.report import Plan, Row, median
from benchmarks.sink import sink
from tests.real.bridge import TailProcess
from tests.real.jaeger import Jaeger
from tests.real.program import Program
from tests.waiting import wait_until

_BECOMES_QUIET_S = 62
"""The bridge looks less often once nothing was written for a minute."""


@dataclass(frozen=True, slots=True)
class _Idle:
    percent: float
    resident_bytes: float


def measure(plan: Plan) -> Iterator[Row]:
    """Share of a core, memory, and the first line after the quiet."""
    each = plan.choose(3, 1)
    with ExitStack() as stack:
        enter = stack.enter_context
        jaeger = enter(Jaeger(plan.folder / "jaeger"))
        to_jaeger, to_sink = enter(recorder(jaeger.http_endpoint)), enter(recorder(enter(sink())))
        logs = [enter(LiveLog(plan.folder / f"{number}.log", number)) for number in range(3 * each)]
        over_http, over_grpc, with_filelog = logs[:each], logs[each : 2 * each], logs[2 * each :]

        def tail(log: LiveLog, *words: str) -> Program:
            return enter(TailProcess(log.path.with_suffix(""), log.path, *words))

        http = [tail(log, "--endpoint", to_jaeger.endpoint) for log in over_http]
        grpc = [tail(log, "--protocol", "grpc", "--endpoint", jaeger.grpc_endpoint) for log in over_grpc]
        filelog = [enter(sending(log.path.with_suffix(""), log.path, to_sink.endpoint)) for log in with_filelog]
        for log in over_http:
            to_jaeger.acknowledged_s(log.session_mark)
        for log in over_grpc:
            wait_until(lambda log=log: jaeger.spans(log.trace_id), "the gRPC bridge has sent its root")  # type: ignore[misc]
        for log in with_filelog:
            to_sink.acknowledged_s(log.session_mark)
        used = _wait(plan, [http, grpc, filelog])
        first_ms = _first_line(over_http, to_jaeger, "call"), _first_line(with_filelog, to_sink, "end")
    for name, one, most_mb in (("HTTP", used[0], 45), ("gRPC", used[1], 58)):
        yield Row(f"idle over {name}: share of a core", "%", one.percent, used[2].percent, most=0.15)
        memory_mb = one.resident_bytes / 1e6
        yield Row(f"idle over {name}: resident", "MB", memory_mb, used[2].resident_bytes / 1e6, most=most_mb)
    yield Row("first line after the quiet, to acknowledged", "ms", first_ms[0], first_ms[1], most=100)


def _wait(plan: Plan, kinds: Sequence[Sequence[Program]]) -> list[_Idle]:
    """What each kind uses while nothing happens; waits for it to be quiet first."""
    pids = [[one.process.pid for one in kind if one.process] for kind in kinds]
    plan.say("idle: waiting until all is quiet")
    time.sleep(plan.choose(_BECOMES_QUIET_S, 1))
    plan.say("idle: waiting, and looking at what that takes")
    before_s = [[cpu_s(pid) for pid in kind] for kind in pids]
    started_s = time.monotonic()
    time.sleep(plan.choose(70, 2))
    long_s = time.monotonic() - started_s
    return [
        _Idle(
            median((cpu_s(pid) - before) / long_s * 100 for pid, before in zip(kind, before_kind, strict=True)),
            median(map(resident_bytes, kind)),
        )
        for kind, before_kind in zip(pids, before_s, strict=True)
    ]


def _first_line(logs: Sequence[LiveLog], backend: Recorder, kind: str) -> float:
    """Milliseconds, the median; one log after the other."""
    found_ms = []
    for number, log in enumerate(logs):
        written_s = log.write(log.call(number), log.response(number))
        found_ms.append((backend.acknowledged_s(mark(kind, number)) - written_s) * 1e3)
    return median(found_ms)
