"""Finished logs, whole: the bridge until every span is acknowledged, filelog until every entry is parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.bridge import parse_only, replay
from benchmarks.filelog import read_whole
from benchmarks.logs import Content, write_mix, write_structured
from benchmarks.processes import Used
from benchmarks.report import Plan, Row, median
from benchmarks.sink import sink

MOST_OF_FILELOG = {"mix": 1.0, "structured": 2.0}


@dataclass(slots=True)
class _Runs:
    bridge: list[Used] = field(default_factory=list)
    filelog: list[Used] = field(default_factory=list)
    plain: list[Used] = field(default_factory=list)

    def row(self, what: str, unit: str, value: Callable[[Used], float], most: float | None = None) -> Row:
        """The medians of one value; `most` is the target, times filelog's."""
        medians = [median(map(value, part)) for part in (self.bridge, self.filelog, self.plain)]
        return Row(what, unit, medians[0], medians[1], medians[2], most=most, of_filelog=most is not None)


def measure(plan: Plan) -> Iterator[Row]:
    """The real log's mix, then its entries alone."""
    mix = write_mix(plan.folder / "mix.log", plan.choose(150_000_000, 1_000_000))
    structured = write_structured(plan.folder / "structured.log", plan.choose(50_000_000, 300_000))
    share = f"{mix.structured / mix.lines:.0%}".replace("%", " %")
    yield from _rows(plan, mix, "mix", f"backfill, the real mix ({share} entries)")
    yield from _rows(plan, structured, "structured", "backfill, entries only")


def _rows(plan: Plan, log: Content, name: str, what: str) -> Iterator[Row]:
    runs = _Runs()
    with sink() as endpoint:
        for number in range(plan.choose(5, 1)):
            plan.say(f"{what}: run {number + 1}")
            runs.filelog.append(read_whole(plan.folder / f"filelog-{name}-{number}", log.path, log.structured))
            runs.bridge.append(replay(log.path, endpoint))
            used, entries = parse_only(log.path)
            runs.plain.append(used)
            if entries != log.structured:
                raise RuntimeError(f"{entries} entries were found in {log.path}, not {log.structured}")
    log.path.unlink()
    size = f"{what}, {log.size_bytes / 1e6:.0f} MB"
    yield runs.row(f"{size}: CPU", "s", lambda used: used.cpu_s, most=MOST_OF_FILELOG[name])
    yield runs.row(f"{size}: wall", "s", lambda used: used.wall_s)
    yield runs.row(f"{size}: most memory", "MB", lambda used: used.peak_bytes / 1e6)
