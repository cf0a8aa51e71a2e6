"""Stopping during an outage, and starting twice."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from otel_bridge.testing import CannedReply, Receiver, Request
from tests.faults.spans import expected, wait_for_all
from tests.faults.writing import write_sessions
from tests.real.bridge import TailProcess, run
from tests.real.ports import reserve_port
from tests.real.program import Program
from tests.waiting import wait_until

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one session, 39 spans."""
    path = tmp_path / "logs" / "server.log"
    write_sessions(path, 1)
    return path


def send(program: Program, number: signal.Signals) -> None:
    """Sends a signal to the process alone, not to its group."""
    assert program.process is not None
    program.process.send_signal(number)


def exit_code(program: Program) -> int:
    """Waits for the end; the code (minus the signal's number where one ended it)."""
    wait_until(lambda: not program.running, "it ended")
    assert program.process is not None
    return program.process.wait()


class Silence:
    """A reply that never comes; `begun` is set once it is awaited."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def __call__(self, _: Request) -> CannedReply:
        self.begun.set()
        return CannedReply(delay_s=600)


@SIGNALS
def test_a_stop_while_nobody_listens_exits_with_0(number: signal.Signals, log: Path, tmp_path: Path) -> None:
    """It says what is left, and the next start sends that."""
    port = reserve_port()
    words = ("--endpoint", f"http://127.0.0.1:{port}", "--from", "beginning")
    with TailProcess(tmp_path / "bridge", log, *words) as bridge:
        wait_until(lambda: bridge.status.waiting_for, "the outage is noticed")
        send(bridge, number)
        assert exit_code(bridge) == 0
        assert "39 spans will be sent after the next start: connection refused" in bridge.output
        assert "Traceback" not in bridge.output
        with Receiver(port=port) as receiver:
            bridge.start()
            wait_for_all(receiver, expected(log))
            assert bridge.stop() == 0


def test_a_stop_while_the_backend_is_silent_exits_with_0(log: Path, tmp_path: Path) -> None:
    """After the deadline, although a request is under way."""
    silence = Silence()
    with Receiver(silence) as receiver:
        words = ("--endpoint", receiver.endpoint, "--from", "beginning")
        with TailProcess(tmp_path / "bridge", log, *words) as bridge:
            assert silence.begun.wait(30)
            send(bridge, signal.SIGTERM)
            assert exit_code(bridge) == 0
            assert "39 spans will be sent after the next start: no answer before the deadline" in bridge.output


@SIGNALS
def test_a_second_signal_ends_it_at_once(number: signal.Signals, log: Path, tmp_path: Path) -> None:
    """It does not wait for the deadline; what was not acknowledged is sent after the next start."""
    silence = Silence()
    port = reserve_port()
    with TailProcess(
        tmp_path / "bridge", log, "--endpoint", f"http://127.0.0.1:{port}", "--from", "beginning"
    ) as bridge:
        with Receiver(silence, port=port):
            assert silence.begun.wait(30)

            def ended() -> bool:
                send(bridge, number)  # two that come before the first is heard are one
                return not bridge.running

            wait_until(ended, "it ended")
            assert exit_code(bridge) == -number
        with Receiver(port=port) as receiver:
            bridge.start()
            wait_for_all(receiver, expected(log))
            assert bridge.stop() == 0


def test_a_second_bridge_names_the_process_of_the_first(log: Path, tmp_path: Path) -> None:
    """It exits with 1 and leaves the first alone, which goes on."""
    with Receiver() as receiver:
        words = ("--endpoint", receiver.endpoint, "--from", "beginning")
        with TailProcess(tmp_path / "bridge", log, *words) as first:
            wait_for_all(receiver, expected(log))
            second = run("tail", log, *words, "--state-dir", first.state_dir)
            assert first.process is not None
            assert second.returncode == 1
            assert f"is in use by process {first.process.pid}; stop that bridge" in second.stderr
            assert second.stderr.count("\n") == 1
            write_sessions(log, 1)
            wait_for_all(receiver, expected(log))
            assert first.stop() == 0


def test_a_killed_bridge_leaves_no_lock_behind(log: Path, tmp_path: Path) -> None:
    """The next one takes the folder over at once."""
    with Receiver() as receiver:
        words = ("--endpoint", receiver.endpoint, "--from", "beginning")
        with TailProcess(tmp_path / "bridge", log, *words) as bridge:
            wait_for_all(receiver, expected(log))
            bridge.kill()
            assert bridge.status.holder is None
            bridge.start()
            write_sessions(log, 1)
            wait_for_all(receiver, expected(log))
            assert bridge.stop() == 0
