"""The real logrotate with `copytruncate`: the log keeps its inode, what was in it lies in another file."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import IO

import pytest

from otel_bridge.testing import Receiver
from tests.faults.spans import expected, wait_for_all
from tests.faults.writing import RotatingWriter
from tests.real.bridge import TailProcess
from tests.real.logrotate import copytruncate
from tests.waiting import wait_until

pytestmark = pytest.mark.real("logrotate")
SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]


class TruncatedWriter(RotatingWriter):
    """Its log is copied and truncated by logrotate, between two lines.

    Not while it writes: what comes between the copy and the truncation is lost to every reader, this one included.
    """

    def _rotate(self, file: IO[bytes]) -> IO[bytes]:
        copytruncate(self.log, self.log.parent.parent)
        return file  # the writer knows nothing of it


@pytest.mark.parametrize(("rotations", "kills"), [(6, 0), (6, 6), pytest.param(60, 60, marks=SLOW)])
def test_nothing_is_lost_or_read_twice(rotations: int, kills: int, tmp_path: Path) -> None:
    """Whether the bridge reads along, lags behind, or is dead while it happens."""
    moments = random.Random(rotations + kills)
    with (
        Receiver() as receiver,
        TruncatedWriter(tmp_path / "logs", max_bytes=200_000, lines_per_second=1_000) as writer,
        TailProcess(tmp_path / "bridge", writer.log, "--endpoint", receiver.endpoint, "--from", "beginning") as bridge,
    ):
        for number in range(kills):
            before = len(receiver.arrived)
            wait_until(lambda before=before: len(receiver.arrived) > before, "it delivers")  # type: ignore[misc]
            until_s = time.monotonic() + moments.uniform(0.05, 1.0)
            wait_until(lambda until_s=until_s: time.monotonic() >= until_s, "the moment has come")  # type: ignore[misc]
            bridge.kill()
            begun = writer.rotations + number % 2  # every other time it is dead while the log is truncated
            wait_until(lambda begun=begun: writer.rotations >= begun, "the log was truncated")  # type: ignore[misc]
            bridge.start()
        wait_until(lambda: writer.rotations >= rotations, "the log was truncated often enough", 120)
        writer.finish()
        assert sorted(path.name for path in writer.log.parent.iterdir()) == [
            "server.log",
            "server.log.1",
            "server.log.2",
            "server.log.3",
        ]
        wait_for_all(receiver, expected(writer.whole))
        assert bridge.stop() == 0
        assert bridge.status.lost_bytes == {}
        assert "warning:" not in bridge.output
