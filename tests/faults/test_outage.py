"""The backend is away for as long as it takes to rotate the log all the way round."""

from __future__ import annotations

import re
from pathlib import Path

from otel_bridge.testing import Receiver
from tests.faults.spans import expected, wait_for_all
from tests.faults.writing import KEPT_FILES, RotatingWriter
from tests.real.bridge import TailProcess
from tests.real.ports import reserve_port
from tests.waiting import wait_until


def test_what_was_rotated_away_during_an_outage_is_delivered_after_it(tmp_path: Path) -> None:
    """Files that have no name any more are kept open until read, and memory stays where it was."""
    receiver = Receiver(port=reserve_port())
    writer = RotatingWriter(tmp_path / "logs", max_bytes=100_000, lines_per_second=2_000)
    with (
        TailProcess(tmp_path / "bridge", writer.log, "--from", "beginning", "--endpoint", receiver.endpoint) as bridge,
        receiver,
    ):
        # at this pace three files are gone in a second: what was rotated away before the bridge looked is nobody's
        wait_until((bridge.state_dir / "state.db").exists, "the bridge is up")
        with writer:
            wait_until(lambda: receiver.spans, "delivery began")
            before = len(receiver.spans)
            receiver.close()
            began = writer.rotations
            wait_until(lambda: writer.rotations >= began + 1, "the outage began")
            at_first = bridge.resident_bytes
            wait_until(lambda: writer.rotations > began + 3 * KEPT_FILES, "the log was rotated all the way round", 120)
            grown = bridge.resident_bytes - at_first
            writer.finish()
            with receiver:
                wait_for_all(receiver, expected(writer.whole), 60)
            assert len(receiver.spans) > before
            assert grown < 20_000_000
            assert "warning:" not in bridge.output


def test_a_kill_during_an_outage_that_rotates_all_the_way_round_names_what_is_lost(tmp_path: Path) -> None:
    """Files that only the killed bridge still held open are named at the next start, with their offset and times."""
    port = reserve_port()
    writer = RotatingWriter(tmp_path / "logs", max_bytes=100_000, lines_per_second=2_000)
    words = (writer.log, "--from", "beginning", "--endpoint", f"http://127.0.0.1:{port}")
    with TailProcess(tmp_path / "bridge", *words) as bridge:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        with writer:
            with Receiver(port=port) as receiver:
                wait_until(lambda: receiver.spans, "delivery began")
            began = writer.rotations
            wait_until(lambda: writer.rotations > began + 2 * KEPT_FILES, "the log was rotated all the way round")
            wait_until(lambda: bridge.status.held_files >= KEPT_FILES, "the state knows of files that are held open")
            held = [file for file in bridge.status.files if file.is_gone and file.lag_bytes]
            bridge.kill()
            writer.finish()
            bridge.start()
            wait_until(lambda: bridge.status.lost_bytes, "the loss is counted")
            oldest = held[0]
            found = re.search(rf"warning: {oldest.path} and \d+ newer files? of its log are gone: .*", bridge.output)
            assert found, f"{held}\n{bridge.output}"
            assert f"what followed byte {oldest.offset_bytes} " in found[0]
            times = re.fullmatch(r".*; entries are missing between (20\S+Z) and (20\S+Z)", found[0])
            assert times, found[0]
            assert times[1] <= times[2]
            assert bridge.status.lost_bytes["gap"] >= sum(file.lag_bytes for file in held)
            with Receiver(port=port) as receiver:
                wait_until(lambda: bridge.status.lag_bytes == 0, "the rest is delivered", 60)
                assert bridge.stop() == 0
