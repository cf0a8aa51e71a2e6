"""What is lost where a log rotates: the bridge and filelog on the same files, which the real winston writes.

Both get every name that the log's files can have, and a place to keep how far they read. A witness that holds every
file open says which calls were written; a call counts as lost when its span, or its entry, was never received.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.filelog import LogRecords, keeping_its_place
from benchmarks.report import Plan, Row
from otel_bridge.testing import Receiver
from tests.faults.witness import Witness
from tests.real.bridge import TailProcess
from tests.real.winston import Winston
from tests.waiting import wait_until

_CALL = re.compile(rb'"message":"tool:call".*?"seq":(\d+)|"seq":(\d+).*?"message":"tool:call"')
_EXPRESSION = re.compile(r"total \+ (\d+)")
_QUIET_S, _LONGEST_S = 3.0, 120.0


@dataclass(frozen=True, slots=True)
class _Case:
    """A pace, the size at which files rotate, and how often both are killed and started again (0: never)."""

    what: str
    lines_per_second: int
    max_bytes: int
    kills: int = 0


CASES = (
    _Case("500 lines a second in files of 64 kB", 500, 64_000),
    _Case("5,000 lines a second in files of 64 kB", 5_000, 64_000),
    _Case("5,000 lines a second in files of 4 MB, killed every other second", 5_000, 4_000_000, kills=8),
)


def measure(plan: Plan) -> Iterator[Row]:
    """The share of calls that were lost, of those that were written."""
    for number, case in enumerate(CASES):
        plan.say(f"rotation: {case.what}")
        folder = plan.folder / f"rotation-{number}"
        (folder / "logs").mkdir(parents=True)
        bridge, filelog = _lost(folder, case, plan.choose(16, 2))
        yield Row(f"rotation, {case.what}: calls lost", "%", bridge, filelog, most=0)


def _lost(folder: Path, case: _Case, seconds: int) -> tuple[float, float]:
    """The percentages that the bridge and filelog lost."""
    log = folder / "logs" / "server.log"
    count = seconds * case.lines_per_second
    with ExitStack() as stack:
        spans = stack.enter_context(Receiver())
        records = stack.enter_context(LogRecords())
        words = (log.parent, "--endpoint", spans.endpoint, "--from", "beginning")
        bridge = stack.enter_context(TailProcess(folder / "bridge", *words))
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        filelog = stack.enter_context(keeping_its_place(folder / "filelog", f"{log.parent}/*.log", records.endpoint))
        witness = stack.enter_context(Witness(log.parent))
        writing = Winston(log, max_bytes=case.max_bytes, count=count, entries_per_second=case.lines_per_second)
        writer = stack.enter_context(writing)
        for pause_s in _pauses(case.kills, seconds):
            time.sleep(pause_s)
            for reader in (bridge, filelog):
                reader.kill()
            for reader in (bridge, filelog):
                reader.start()
        writer.wait()
        _wait_until_quiet(lambda: len(spans.spans), lambda: len(records.bodies))
        whole = witness.write_whole(folder / "whole.log")
    written = {int(found[1] or found[2]) for found in _CALL.finditer(whole.read_bytes())}
    arguments = (str(span.attributes.get("gen_ai.tool.call.arguments", "")) for span in spans.spans)
    received = {int(found[1]) for text in arguments if (found := _EXPRESSION.search(text))}
    parsed = {seq for message, seq in records.entries() if message == "tool:call"}
    return _share(written - received, written), _share(written - parsed, written)


def _pauses(kills: int, seconds: int) -> Iterator[float]:
    moments = random.Random(kills)
    for _ in range(kills):
        yield moments.uniform(0, 1.5 * seconds / kills)


def _wait_until_quiet(*counts: Callable[[], int]) -> None:
    """Until nothing more has come for a while."""
    until_s = time.monotonic() + _LONGEST_S
    before, changed_s = [-1], time.monotonic()
    while time.monotonic() - changed_s < _QUIET_S:
        now = [count() for count in counts]
        if now != before:
            before, changed_s = now, time.monotonic()
        if time.monotonic() > until_s:
            raise RuntimeError(f"still something comes after {_LONGEST_S:g} s")
        time.sleep(0.1)


def _share(some: set[int], of: set[int]) -> float:
    return len(some) / len(of) * 100
