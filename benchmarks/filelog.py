"""The OpenTelemetry Collector's filelog receiver, as a user would set it up today: it parses, and builds no spans."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.processes import Used, cpu_s, peak_bytes
from tests.real.collector import Collector
from tests.waiting import wait_until

FILTER = r'not (body matches "\"message\":\\s*\"(tool|debug|session):")'
_RECORDS = re.compile(r'"log records": (\d+)')


def filelog(folder: Path, log: Path) -> Collector:
    """A collector that keeps the entries of `log`, parses them, and sends them nowhere."""
    return _collector(folder, log, "debug", {"verbosity": "basic"})


def sending(folder: Path, log: Path, endpoint: str) -> Collector:
    """A collector that sends what it has parsed to an endpoint, over OTLP/HTTP and at once."""
    at_once = {"endpoint": endpoint, "compression": "none", "sending_queue": {"enabled": False}}
    return _collector(folder, log, "otlp_http", at_once)


def _collector(folder: Path, log: Path, exporter: str, settings: Mapping[str, object]) -> Collector:
    config = {
        "receivers": {
            "filelog": {
                "include": [str(log)],
                "start_at": "beginning",
                "operators": [{"type": "filter", "expr": FILTER}, {"type": "json_parser"}],
            }
        },
        "exporters": {exporter: settings},
        "service": {
            "pipelines": {"logs": {"receivers": ["filelog"], "exporters": [exporter]}},
            # Every batch is said, so that the end can be seen: one short line a hundred entries.
            "telemetry": {"metrics": {"level": "none"}, "logs": {"sampling": {"enabled": False}}},
        },
    }
    return Collector(folder, config)


def parsed(collector: Collector) -> int:
    """How many entries it has parsed so far, by its own words."""
    return sum(int(count) for count in _RECORDS.findall(collector.output))


def read_whole(folder: Path, log: Path, entries: int) -> Used:
    """What a collector uses from its start until it has parsed all `entries` of a log."""
    collector = filelog(folder, log)
    started_s = time.perf_counter()
    with collector:
        wait_until(lambda: parsed(collector) >= entries, f"filelog has parsed {entries} entries", 300)
        wall_s = time.perf_counter() - started_s
        assert collector.process is not None
        return Used(wall_s, cpu_s(collector.process.pid), peak_bytes(collector.process.pid))
