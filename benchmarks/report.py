"""What was measured, as values, and as the table that people read."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from otel_bridge import __version__
from otel_bridge.sessions import log_mapping

PARTS = ("bridge", "filelog", "plain")


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was measured: of the bridge, of filelog, and where there is one its plain limit.

    `most` is the target, None for none: times filelog's value where `of_filelog` is set, else in the row's own unit.
    """

    what: str
    unit: str
    bridge: float
    filelog: float | None = None
    plain: float | None = None
    most: float | None = None
    of_filelog: bool = False

    @property
    def ratio(self) -> float | None:
        """The bridge's value as a multiple of filelog's."""
        return self.bridge / self.filelog if self.filelog else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        value = self.ratio if self.of_filelog else self.bridge
        return None if self.most is None or value is None else value <= self.most


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: where files go, how often, and whether only to see that every benchmark works."""

    folder: Path
    short: bool
    say: Callable[[str], None]

    def choose(self, whole: int, short: int) -> int:
        """A number of the whole form, or of the short one."""
        return short if self.short else whole


def median(values: Iterable[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def as_json(rows: Sequence[Row]) -> bytes:
    """Everything, for programs."""
    measured: list[dict[str, Any]] = [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows]
    whole = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "version": __version__, "rows": measured}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2)


def as_table(rows: Sequence[Row], *, short: bool) -> str:
    """Everything, as a Markdown table with the date and the machine above it."""
    core = "Python" if log_mapping.__file__.endswith(".py") else "compiled"
    lines = [f"{datetime.now(UTC):%Y-%m-%d}, {machine()}, otel-bridge {__version__} (core: {core})."]
    if short:
        lines.append("Short form: it shows that every benchmark works, and its figures say nothing.")
    lines += [
        "",
        "| what | bridge | filelog | bridge ÷ filelog | plain limit | target | met |",
        "|---|--:|--:|--:|--:|--:|---|",
        *(_line(row, short=short) for row in rows),
    ]
    return "\n".join(lines)


def machine() -> str:
    """The shape of the machine, in a few words."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {gigabytes:.0f} GB, {system}, CPython {platform.python_version()}"


def _line(row: Row, *, short: bool) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} ×"
    target = ""
    if row.most is not None:
        target = f"≤ {row.most:g} ×" if row.of_filelog else f"≤ {_figure(row.most, row.unit)}"
    met = {True: "yes", False: "**no**", None: ""}[None if short else row.met]
    values = [_figure(row.bridge, row.unit), _figure(row.filelog, row.unit), ratio, _figure(row.plain, row.unit)]
    return f"| {' | '.join((row.what, *values, target, met))} |"


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}"
