"""`otel-bridge run` in a terminal: each signal reaches the server once, whoever sent it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.wrapper.wrapped import COMMAND, Wrapped

SERVER = (sys.executable, str(Path(__file__).parent / "server.py"))
MAIN = "from otel_bridge.cli.main import main; main()"
WITHOUT_SENDERS = (sys.executable, "-P", "-c", f"import signal; del signal.sigwaitinfo; {MAIN}", "run")
"""As on a system that cannot tell who sent a signal."""
WITHOUT_THREADS = (
    sys.executable,
    "-P",
    "-c",
    f"import threading; threading.Thread.start = lambda self: exec('raise RuntimeError'); {MAIN}",
    "run",
)
"""As where a user has as many threads as are allowed."""


@dataclass
class Terminal:
    """A terminal; whoever holds `keys` has the keyboard."""

    keys: int
    line: int

    def hang_up(self) -> None:
        """Nobody is at its other end any more."""
        os.close(self.keys)
        self.keys = -1


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal of its own."""
    made = Terminal(*pty.openpty())
    yield made
    os.close(made.line)
    if made.keys >= 0:
        os.close(made.keys)


def check_heard(run: Wrapped, name: str) -> None:
    """The server hears that signal, and then no other before one that is sent to the wrapper alone."""
    assert json.loads(run.line())["params"] == {"name": name}
    run.process.send_signal(signal.SIGUSR1)
    assert json.loads(run.line())["params"] == {"name": "SIGUSR1"}


@pytest.mark.parametrize(("key", "name"), [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")])
@pytest.mark.parametrize("program", [COMMAND, WITHOUT_SENDERS, WITHOUT_THREADS], ids=["told", "guessed", "no_thread"])
@pytest.mark.parametrize("prefix", [(), ("setsid",)], ids=["in_our_group", "in_its_own"])
def test_a_key_reaches_the_server_once(
    tmp_path: Path, terminal: Terminal, key: bytes, name: str, program: tuple[str, ...], prefix: tuple[str, ...]
) -> None:
    """From the terminal where that sends it to the server too, else from us."""
    with Wrapped(tmp_path, [*prefix, *SERVER], terminal=terminal.line, program=program) as run:
        run.call(1, "initialize")

        os.write(terminal.keys, key)

        check_heard(run, name)
        assert run.close() == 0


def test_a_window_that_changes_is_told_once(tmp_path: Path, terminal: Terminal) -> None:
    """As a key is."""
    with Wrapped(tmp_path, SERVER, terminal=terminal.line) as run:
        run.call(1, "initialize")

        fcntl.ioctl(terminal.keys, termios.TIOCSWINSZ, struct.pack("4H", 20, 60, 0, 0))

        check_heard(run, "SIGWINCH")
        assert run.close() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_sent_to_the_wrapper_alone_reaches_the_server(
    tmp_path: Path, terminal: Terminal, number: signal.Signals
) -> None:
    """Also in a terminal, and after its keys were used."""
    with Wrapped(tmp_path, SERVER, terminal=terminal.line) as run:
        run.call(1, "initialize")
        os.write(terminal.keys, b"\x03")
        check_heard(run, "SIGINT")

        run.process.send_signal(number)

        check_heard(run, number.name)
        assert run.close() == 0


def test_a_terminal_that_goes_away_is_told_of(tmp_path: Path, terminal: Terminal) -> None:
    """The kernel tells the leader of the session, which is the wrapper here, and that tells the server."""
    with Wrapped(tmp_path, SERVER, terminal=terminal.line) as run:
        run.call(1, "initialize")

        terminal.hang_up()

        check_heard(run, "SIGHUP")
        assert run.close() == 0


def test_a_key_that_ends_the_server_ends_the_wrapper_alike(tmp_path: Path, terminal: Terminal) -> None:
    """So that the shell knows what happened."""
    with Wrapped(tmp_path, ["sh", "-c", "echo ready; cat"], terminal=terminal.line) as run:
        assert run.line() == b"ready\n"

        os.write(terminal.keys, b"\x03")

        assert run.process.wait() == -signal.SIGINT
