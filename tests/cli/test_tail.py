"""`otel-bridge tail` as a person starts and stops it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from otel_bridge.testing import Receiver
from tests.real.bridge import TailProcess
from tests.real.ports import reserve_port
from tests.recordings import Recording
from tests.waiting import wait_until


def test_it_says_what_it_follows_and_where_that_goes(tmp_path: Path) -> None:
    """At once, also when there is no log yet."""
    endpoint = f"http://127.0.0.1:{reserve_port()}"
    with TailProcess(tmp_path / "bridge", tmp_path / "logs", "--endpoint", endpoint) as bridge:
        wait_until(lambda: "no log yet in" in bridge.output, "it says that there is no log")
        assert endpoint in bridge.output
        assert bridge.stop() == 0


def test_a_backend_that_is_away_is_said_at_once(tmp_path: Path) -> None:
    """With the reason, and that nothing is lost."""
    (tmp_path / "server.log").write_bytes(Recording("happy").log)
    endpoint = f"http://127.0.0.1:{reserve_port()}"
    with TailProcess(tmp_path / "bridge", tmp_path / "server.log", "--endpoint", endpoint) as bridge:
        wait_until(lambda: "connection refused" in bridge.output, "it says why nothing is delivered")
        assert "nothing is lost" in bridge.output


def test_what_was_not_delivered_is_delivered_after_the_next_start_however_old_it_is(tmp_path: Path) -> None:
    """Where a log is begun is decided once, when it is first seen; not anew at each start."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)
    away = f"http://127.0.0.1:{reserve_port()}"
    with TailProcess(tmp_path / "bridge", log, "--endpoint", away) as bridge:
        wait_until(lambda: "connection refused" in bridge.output, "it read the log")
        assert bridge.stop() == 0
    long_ago_s = time.time() - 7200
    os.utime(log, (long_ago_s, long_ago_s))
    with Receiver() as receiver, TailProcess(tmp_path / "bridge", log, "--endpoint", receiver.endpoint):
        receiver.wait_for(lambda so_far: len(so_far.spans) == 39, 30)


def test_what_was_only_shown_is_still_delivered(tmp_path: Path) -> None:
    """The console exporter keeps its marks apart from those of a backend."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)
    home = {"XDG_STATE_HOME": str(tmp_path / "state")}
    shown = TailProcess(tmp_path / "bridge", log, "--exporter", "console", env=home)
    shown.command = shown.command[:-2]  # without --state-dir
    with shown:
        wait_until(lambda: "debug_session lifetime" in shown.output, "the session was shown")
        assert shown.stop() == 0
    with Receiver() as receiver:
        sent = TailProcess(tmp_path / "other", log, "--endpoint", receiver.endpoint, env=home)
        sent.command = sent.command[:-2]
        with sent:
            receiver.wait_for(lambda so_far: len(so_far.spans) == 39, 30)
