"""From the write of a line to the backend's word: one session live, the bridge and filelog on the same log.

The bridge sends to a real Jaeger through a `Recorder`; the time ends when Jaeger's own `200` for the request that
holds the span comes back to it. Filelog sends what it has parsed to a backend that takes everything, through a
recorder as well. Both follow the same log at the same time. The pauses between calls are of any length below filelog's
step of 200 ms, so that no call falls into the same place of it as the one before.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from benchmarks.filelog import sending
from benchmarks.live_log import LiveLog
from benchmarks.recorder import mark, recorder
from benchmarks.report import Plan, Row, median, percentile
from benchmarks.sink import sink
from tests.real.bridge import TailProcess
from tests.real.jaeger import Jaeger

_CALL_S = 0.02
_LONGEST_PAUSE_S = 0.2


def measure(plan: Plan) -> Iterator[Row]:
    """The median, and what one call in a hundred exceeds."""
    calls = plan.choose(300, 10)
    plan.say(f"latency: {calls} calls")
    bridge_ms, filelog_ms = [], []
    pauses = random.Random(1)
    with (
        Jaeger(plan.folder / "jaeger") as jaeger,
        recorder(jaeger.http_endpoint) as to_jaeger,
        sink() as endpoint,
        recorder(endpoint) as to_sink,
        LiveLog(plan.folder / "live.log") as log,
        TailProcess(plan.folder / "bridge", log.path, "--endpoint", to_jaeger.endpoint),
        sending(plan.folder / "filelog", log.path, to_sink.endpoint),
    ):
        to_jaeger.acknowledged_s(log.session_mark)
        to_sink.acknowledged_s(log.session_mark)
        for number in range(calls):
            log.write(log.call(number))
            time.sleep(_CALL_S)
            written_s = log.write(log.response(number))
            bridge_ms.append((to_jaeger.acknowledged_s(mark("call", number)) - written_s) * 1e3)
            filelog_ms.append((to_sink.acknowledged_s(mark("end", number)) - written_s) * 1e3)
            time.sleep(pauses.uniform(0, _LONGEST_PAUSE_S))
    what = "from a line's write to its span acknowledged by Jaeger"
    yield Row(f"{what}: median", "ms", median(bridge_ms), median(filelog_ms), most=25)
    yield Row(f"{what}: p99", "ms", percentile(bridge_ms, 99), percentile(filelog_ms, 99), most=100)
