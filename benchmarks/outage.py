"""The backend is away and the queue is full, while the server goes on writing: what does waiting cost?

Nothing listens at the endpoint. The log holds far more than the queue takes, so the bridge reads until it is full;
from then on it is looked at, while a session's lines go on coming, ten a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.live_log import LiveLog
from benchmarks.logs import write_mix
from benchmarks.processes import cpu_s, resident_bytes
from benchmarks.report import Plan, Row
from tests.real.bridge import TailProcess
from tests.real.ports import reserve_port
from tests.waiting import wait_until

_LINES_EVERY_S = 0.2
_STILL_S = 1.0
_FULL_BELOW = 0.1
"""Share of a core below which it no longer reads."""


def measure(plan: Plan) -> Iterator[Row]:
    """Share of a core, and how memory grew."""
    log = plan.folder / "outage.log"
    write_mix(log, plan.choose(50_000_000, 10_000_000))
    nobody = f"http://127.0.0.1:{reserve_port()}"
    plan.say("outage: reading until the queue is full")
    with (
        LiveLog(log) as live,
        TailProcess(plan.folder / "bridge", log, "--from", "beginning", "--endpoint", nobody) as bridge,
    ):
        assert bridge.process is not None
        pid = bridge.process.pid
        wait_until(lambda: bridge.status.waiting_for, "the bridge says that it waits for the backend")
        wait_until(lambda: _share(pid, _STILL_S) < _FULL_BELOW, "the bridge reads no more", 60)
        plan.say("outage: looking at what waiting takes")
        before_bytes, before_s, started_s = resident_bytes(pid), cpu_s(pid), time.monotonic()
        number = 0
        while (long_s := time.monotonic() - started_s) < plan.choose(45, 2):
            live.write(live.call(number), live.response(number))
            number += 1
            time.sleep(_LINES_EVERY_S)
        used_s, after_bytes = cpu_s(pid) - before_s, resident_bytes(pid)
    yield Row("outage, queue full, 10 lines a second written: share of a core", "%", used_s / long_s * 100, most=1)
    yield Row("outage, queue full: resident", "MB", after_bytes / 1e6)
    yield Row(f"outage, queue full: growth in {long_s:.0f} s", "MB", (after_bytes - before_bytes) / 1e6, most=1)


def _share(pid: int, for_s: float) -> float:
    before_s = cpu_s(pid)
    time.sleep(for_s)
    return (cpu_s(pid) - before_s) / for_s
