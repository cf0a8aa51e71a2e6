"""`kill -9` of the bridge at random moments, under writing and rotation: nothing is lost, nothing shown twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from otel_bridge.testing import Receiver
from tests.faults.spans import expected, wait_for_all
from tests.faults.writing import RotatingWriter
from tests.real.bridge import TailProcess
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("kills", "max_bytes"),
    [(12, 256_000), pytest.param(200, 1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])],
)
def test_a_killed_bridge_goes_on_where_the_backend_acknowledged(kills: int, max_bytes: int, tmp_path: Path) -> None:
    """Whatever it was doing: starting, reading, sending, committing.

    The files together last longer than any series of starts that were killed before they had delivered something.
    """
    moments = random.Random(kills)
    with (
        Receiver() as receiver,
        RotatingWriter(tmp_path / "logs", max_bytes=max_bytes, lines_per_second=400) as writer,
    ):
        bridge = TailProcess(tmp_path / "bridge", writer.log, "--endpoint", receiver.endpoint, "--from", "beginning")
        with bridge:
            for _ in range(kills):
                until_s = time.monotonic() + moments.uniform(0.05, 2.0)
                wait_until(lambda until_s=until_s: time.monotonic() >= until_s, "the moment has come")  # type: ignore[misc]
                assert bridge.running, bridge.output
                bridge.kill()
                bridge.start()
            writer.finish()
            assert writer.rotations >= 1
            wait_for_all(receiver, expected(writer.whole))
            assert "warning:" not in bridge.output
