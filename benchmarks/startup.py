"""How long a person waits for a short command."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bridge import replay, show_version
from benchmarks.report import Plan, Row, median
from benchmarks.sink import sink
from tests.recordings import recording


def measure(plan: Plan) -> Iterator[Row]:
    """`--version`, and the replay of one session."""
    (log,) = recording("happy").unpack(plan.folder)
    versions, replays = [], []
    with sink() as endpoint:
        for number in range(plan.choose(21, 2)):
            plan.say(f"startup: run {number + 1}")
            versions.append(show_version())
            replays.append(replay(log, endpoint))
    size = f"{log.stat().st_size / 1e3:.0f} kB"
    yield Row("`otel-bridge --version`: wall", "ms", median(used.wall_s for used in versions) * 1e3, most=120)
    yield Row("`otel-bridge --version`: CPU", "ms", median(used.cpu_s for used in versions) * 1e3)
    yield Row(f"`otel-bridge replay`, {size}: wall", "ms", median(used.wall_s for used in replays) * 1e3, most=400)
    yield Row(f"`otel-bridge replay`, {size}: CPU", "ms", median(used.cpu_s for used in replays) * 1e3)
