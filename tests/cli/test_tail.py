"""`otel-bridge tail` as a person starts and stops it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sources.claims import claim
from otel_bridge.testing import Receiver
from tests.faults.spans import by_id, check_same, expected, wait_for_all
from tests.real.bridge import TailProcess
from tests.real.ports import reserve_port
from tests.recordings import Recording
from tests.waiting import wait_until


def test_it_says_what_it_follows_and_where_that_goes(tmp_path: Path) -> None:
    """At once, also when there is no log yet; then the first one is news, and those after it are not."""
    endpoint = f"http://127.0.0.1:{reserve_port()}"
    with TailProcess(tmp_path / "bridge", tmp_path / "logs", "--endpoint", endpoint) as bridge:
        wait_until(lambda: "no log yet in" in bridge.output, "it says that there is no log")
        assert endpoint in bridge.output
        (tmp_path / "logs").mkdir()
        for files, name in enumerate(("happy", "errors"), 1):
            (tmp_path / "logs" / f"{name}.log").write_bytes(Recording(name).log)
            wait_until(lambda files=files: len(bridge.status.files) == files, "it is followed")  # type: ignore[misc]
        assert bridge.stop() == 0
    assert [line for line in bridge.output.splitlines() if "found" in line] == [
        f"otel-bridge: found {tmp_path / 'logs' / 'happy.log'}"
    ]


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


def test_without_path_only_what_is_this_users_and_nobody_elses_is_followed(tmp_path: Path) -> None:
    """In a default place, which many can write to: neither another user's log nor one that a wrapper follows."""
    places, runtime = tmp_path / "temporary" / "debug-mcp-server", tmp_path / "runtime"
    places.mkdir(parents=True)
    runtime.mkdir(0o700)
    (places / "debug-mcp-server-1.log").write_bytes(Recording("happy").log)
    (places / "debug-mcp-server-2.log").write_bytes(Recording("secrets").log)
    if os.geteuid() == 0:  # nobody else can give a file away
        (places / "debug-mcp-server-3.log").write_bytes(Recording("errors").log)
        os.chown(places / "debug-mcp-server-3.log", 65_534, -1)
    wanted = {span.trace_id for span in expected(places / "debug-mcp-server-1.log").values()}
    others = [span for path in sorted(places.iterdir())[1:] for span in expected(path).values()]
    env = {"TMPDIR": str(places.parent), "XDG_RUNTIME_DIR": str(runtime)}
    held = claim(runtime / "otel-bridge" / "claims", [str(places / "debug-mcp-server-2.log")])
    with Receiver() as receiver, TailProcess(tmp_path / "bridge", "--endpoint", receiver.endpoint, env=env) as bridge:
        receiver.wait_for(lambda so_far: wanted <= {span.trace_id for span in so_far.spans}, 30)
        assert bridge.stop() == 0  # what it had read is delivered then
        assert not {span.trace_id for span in others} & {span.trace_id for span in receiver.spans}
    held.release()


def test_logs_that_are_not_named_again_are_left_as_they_were(tmp_path: Path) -> None:
    """Neither read on nor their sessions ended meanwhile; named again, they go on where they were."""
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    lines = Recording("happy").log.splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:60]))
    second.write_bytes(Recording("secrets").log)
    whole = tmp_path / "whole"
    whole.write_bytes(b"".join(lines))
    wanted, others = (expected(path, options=MappingOptions(idle_timeout_ms=1_000)) for path in (whole, second))

    def tailed(receiver: Receiver, *paths: Path) -> TailProcess:
        arguments = ["--endpoint", receiver.endpoint, "--idle-timeout", "1s", "--from", "beginning"]
        return TailProcess(tmp_path / "bridge", *paths, *arguments)

    with Receiver() as receiver:
        with tailed(receiver, first) as bridge:
            receiver.wait_for(lambda so_far: so_far.spans, 30)
            assert bridge.stop() == 0
        first.write_bytes(b"".join(lines))
        before = len(receiver.spans)
        with tailed(receiver, second) as bridge:
            receiver.wait_for(lambda so_far: len(so_far.spans) >= before + len(others), 30)
            assert bridge.stop() == 0
        check_same(by_id(receiver.spans[before:]), others)
        with tailed(receiver, first):
            wait_for_all(receiver, wanted | others)
