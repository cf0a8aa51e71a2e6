"""`python -m benchmarks`: measures everything, or what is named, and prints one table."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import backfill, handler_cost, idle, latency, many_sessions, outage, pump_latency, rotation, startup
from benchmarks.report import Plan, Row, as_json, as_table

BENCHMARKS: dict[str, Callable[[Plan], Iterator[Row]]] = {
    "backfill": backfill.measure,
    "latency": latency.measure,
    "idle": idle.measure,
    "sessions": many_sessions.measure,
    "outage": outage.measure,
    "rotation": rotation.measure,
    "startup": startup.measure,
    "pump": pump_latency.measure,
    "handler": handler_cost.measure,
}


def main() -> None:
    """Measures, one benchmark after the other: never two at once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--short", action="store_true", help="only see that every benchmark works (a minute)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    wanted = parser.parse_args()
    rows: list[Row] = []
    for name in wanted.only or BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix="otel-bridge-bench-") as folder:
            # Not what a server on this machine has left: with its DAP traces there, ended calls are kept for them.
            os.environ["TMPDIR"] = folder
            rows += BENCHMARKS[name](Plan(Path(folder), wanted.short, _say))
    if wanted.json:
        wanted.json.write_bytes(as_json(rows))
    sys.stdout.write(as_table(rows, short=wanted.short) + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
