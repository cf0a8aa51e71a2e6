"""When the worker ends the server itself, and when it must not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from otel_bridge.wrapper import server as module
from otel_bridge.wrapper.server import Server

ANOTHER = 0
"""No process's parent here: that of a worker whose pump is gone."""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for the end of its input, and times that are over at once."""
    monkeypatch.setattr(module, "TERM_AFTER_S", 0.0)
    monkeypatch.setattr(module, "KILL_AFTER_S", 0.5)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as started:
        yield started
        if started.stdin:
            started.stdin.close()


def test_a_server_whose_wrapper_is_gone_is_asked_first(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM ends what heeds it."""
    Server(process.pid, ANOTHER).end_if_abandoned(threading.Event())

    assert process.wait() == -signal.SIGTERM


def test_a_server_whose_wrapper_lives_is_left_alone(process: subprocess.Popen[bytes]) -> None:
    """However the pipe between wrapper and worker ended."""
    Server(process.pid, os.getppid()).end_if_abandoned(threading.Event())
    assert process.stdin
    process.stdin.close()

    assert process.wait() == 0


def test_a_run_that_is_over_ends_nothing(process: subprocess.Popen[bytes]) -> None:
    """The process id may be another's by now."""
    over = threading.Event()
    over.set()
    Server(process.pid, ANOTHER).end_if_abandoned(over)
    assert process.stdin
    process.stdin.close()

    assert process.wait() == 0


def test_a_process_id_that_is_used_again_is_another_process(process: subprocess.Popen[bytes]) -> None:
    """The server that was seen has ended; who has its number now is none of ours."""
    server = Server(process.pid, ANOTHER)
    server._seen = None

    server.end_if_abandoned(threading.Event())
    assert process.stdin
    process.stdin.close()

    assert server.has_ended()
    assert process.wait() == 0


def test_a_server_that_ended_before_it_was_seen(process: subprocess.Popen[bytes]) -> None:
    """It has ended, though nobody has reaped it yet."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert Server(process.pid, ANOTHER).has_ended()
