"""`kill -9` of the collector and of Jaeger, in turn, while the bridge goes on: Jaeger shows everything, and once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.faults.shown import should_show, shown
from tests.faults.spans import check_same, expected
from tests.faults.writing import RotatingWriter
from tests.real.bridge import TailProcess
from tests.real.collector import Collector
from tests.real.jaeger import Jaeger
from tests.real.ports import reserve_port
from tests.waiting import wait_until


def passing_on(port: int, jaeger: Jaeger) -> dict[str, object]:
    """A collector whose 200 is Jaeger's word: no queue, no batches, no tries of its own."""
    exporter = {
        "endpoint": jaeger.http_endpoint,
        "sending_queue": {"enabled": False},
        "retry_on_failure": {"enabled": False},
    }
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"otlp_http": exporter},
        "service": {"pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]}}},
    }


@pytest.mark.real("collector", "jaeger")
@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_killed_backends_cost_nothing(kills: int, tmp_path: Path) -> None:
    """With storage on disk, and a collector that answers with its backend's word."""
    moments = random.Random(kills)
    port = reserve_port()

    def wait() -> None:
        until_s = time.monotonic() + moments.uniform(0.05, 1.5)
        wait_until(lambda: time.monotonic() >= until_s, "the moment has come")

    with (
        Jaeger(tmp_path / "jaeger", badger_folder=tmp_path / "store", max_clock_skew_adjust_s=10) as jaeger,
        Collector(tmp_path / "collector", passing_on(port, jaeger)) as collector,
        RotatingWriter(tmp_path / "logs", max_bytes=1_000_000, lines_per_second=1_000) as writer,
        TailProcess(
            tmp_path / "bridge", writer.log, "--endpoint", f"http://127.0.0.1:{port}", "--from", "beginning"
        ) as bridge,
    ):
        for number in range(kills):
            victim = (collector, jaeger)[number % 2]
            wait()
            victim.kill()
            wait()
            victim.start()
        writer.finish()
        wanted = {key: should_show(span) for key, span in expected(writer.whole).items()}
        wait_until(lambda: bridge.status.delivered_spans >= len(wanted), "all is delivered", 120)
        assert bridge.running
        check_same(shown(jaeger, {trace_id for trace_id, _ in wanted}), wanted)
        assert bridge.stop() == 0
        assert "warning:" not in bridge.output
