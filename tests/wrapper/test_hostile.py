"""`otel-bridge run` among clients, servers and processes that do not behave: nothing hangs, nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_bridge.sources.processes import running
from otel_bridge.testing import Receiver
from tests.waiting import wait_until
from tests.wrapper.wrapped import COMMAND, NOWHERE, Wrapped, hear_signals

SERVER = (sys.executable, str(Path(__file__).parent / "server.py"))

DEAF = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("up", flush=True)
while True:
    time.sleep(1)
"""
"""A server that neither a signal nor the end of its input ends."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


def call(name: str, **arguments: object) -> bytes:
    """A tool call as a line."""
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n"


@pytest.mark.parametrize("is_one", [False, True], ids=["two", "one"])
def test_a_client_whose_pipes_are_sockets(tmp_path: Path, is_one: bool) -> None:
    """As Node makes them; also where one socket is both input and output. All of a large answer arrives."""
    client_in, theirs_in = socket.socketpair()
    client_out, theirs_out = (client_in, theirs_in) if is_one else socket.socketpair()
    words = [*COMMAND, "--endpoint", NOWHERE, "--state-dir", str(tmp_path), "--", *SERVER]
    with (
        client_in,
        client_out,
        subprocess.Popen(words, stdin=theirs_in.fileno(), stdout=theirs_out.fileno(), stderr=subprocess.PIPE) as run,
    ):
        theirs_in.close()
        theirs_out.close()
        client_in.sendall(call("large", bytes=3_000_000))
        size_bytes, last = 0, b""
        while last != b"\n":
            data = client_out.recv(1 << 16)
            size_bytes, last = size_bytes + len(data), data[-1:]
        client_in.shutdown(socket.SHUT_WR)
        run.communicate()

    assert size_bytes > 3_000_000
    assert run.returncode == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_client_that_opens_less_than_it_should(tmp_path: Path, closed: str) -> None:
    """The server sees ends that are closed, and ends as it would; no other file takes their numbers."""
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "--endpoint", NOWHERE, "--state-dir", str(tmp_path)]
    done = subprocess.run([*words, "--", *SERVER], input=call("echo", text="hi"), capture_output=True, check=False)

    assert done.returncode == 0
    assert done.stdout.count(b'"hi"') == (closed == "2>&-")
    assert b"Traceback" not in done.stderr


def test_a_client_that_reads_nothing_costs_no_memory(tmp_path: Path) -> None:
    """Its server waits, as it would without us; and what was not read yet still comes, whole."""
    with Wrapped(tmp_path, SERVER) as run:
        run.call(0, "tools/call", name="echo")
        run.send({"id": 1, "method": "tools/call", "params": {"name": "large", "arguments": {"bytes": 50_000_000}}})
        assert run.stdout.read(10) == b'{"jsonrpc"'  # it has begun
        status = Path(f"/proc/{run.process.pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 60_000  # kB, most of it Python

        run.stdin.close()
        assert len(run.stdout.read()) > 50_000_000
        assert run.process.wait() == 0


def test_a_server_below_another_process_ends_with_the_wrapper(tmp_path: Path) -> None:
    """As under `npx`: the signal ends the process between, and the end of its input the server."""
    with Wrapped(tmp_path, ["sh", "-c", '"$@"; exit 0', "sh", *SERVER]) as run:
        run.call(1, "tools/call", name="echo")

        run.process.send_signal(signal.SIGTERM)

        assert run.process.wait() == -signal.SIGTERM
        wait_until(lambda: not run.pids(), "all of it has ended")


def test_what_a_server_leaves_running_holds_nothing_up(tmp_path: Path) -> None:
    """It has the server's output open, and says nothing."""
    with Wrapped(tmp_path, ["sh", "-c", "sleep 1000 & echo left; exit 3"]) as run:
        assert run.line() == b"left\n"
        assert run.process.wait() == 3


def test_a_worker_that_is_frozen_stops_nothing(tmp_path: Path) -> None:
    """Calls pass; at the end it is waited for no longer than until the first signal."""
    with Wrapped(tmp_path, SERVER) as run:
        os.kill(run.worker(), signal.SIGSTOP)
        for number in range(200):
            assert run.call(number, "tools/call", name="echo")["id"] == number
        server = next(
            pid for pid in run.pids() if str(SERVER[1]) in _command(pid) and "otel_bridge" not in _command(pid)
        )
        run.stdin.close()
        wait_until(lambda: running(server) is None, "the server has ended")

        run.process.send_signal(signal.SIGTERM)

        assert run.process.wait() == 0


@pytest.mark.parametrize("is_away", [False, True], ids=["backend", "no backend"])
def test_a_server_that_does_not_end_is_ended_when_the_wrapper_is_killed(
    tmp_path: Path, receiver: Receiver, is_away: bool
) -> None:
    """Who kills what it started means the server: nothing of the run lives on, whether or not there is a backend."""
    with Wrapped(tmp_path / "run", deaf_debugger(tmp_path), endpoint=NOWHERE if is_away else receiver.endpoint) as run:
        assert run.line() == b"up\n"
        (left,) = wait_until(lambda: list(run.state.glob("runs/*")), "the run has a folder")
        wait_until(lambda: '"server": {' in (left / "run.json").read_text(), "the worker has said whose it is")
        run.process.kill()
        run.process.wait()

        wait_until(lambda: not run.pids(), "all of it has ended")
        assert not left.exists()


def test_what_a_server_that_nothing_ends_leaves_is_the_next_runs(tmp_path: Path, receiver: Receiver) -> None:
    """When the worker is killed too; as long as that server lives, what is left is nobody's."""
    with Wrapped(tmp_path / "run", deaf_debugger(tmp_path), endpoint=receiver.endpoint) as run:
        assert run.line() == b"up\n"
        worker = run.worker()
        (left,) = wait_until(lambda: list(run.state.glob("runs/*")), "the run has a folder")
        wait_until(lambda: '"server": {' in (left / "run.json").read_text(), "the worker has said whose it is")
        os.kill(worker, signal.SIGSTOP)
        run.process.kill()
        run.process.wait()
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: running(worker) is None, "the worker has ended")
        (server,) = run.pids()

        assert _next_run(run.state) == ""
        assert left.exists()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: running(server) is None, "the server has ended")
        assert "what 1 earlier run had left is delivered" in _next_run(run.state, left)
        assert not left.exists()


def deaf_debugger(folder: Path) -> list[str | Path]:
    """The command of a server that is taken for mcp-debugger and that nothing but SIGKILL ends."""
    program = folder / "mcp-debugger" / "deaf.py"
    program.parent.mkdir()
    program.write_text(DEAF)
    return [sys.executable, program]


def _next_run(state: Path, taken_up: Path | None = None) -> str:
    """Another run with the same state, until it has taken up what it should, or has ended; what it said."""
    with Receiver() as receiver:
        words = [*COMMAND, "--endpoint", receiver.endpoint, "--state-dir", str(state), "--", *SERVER]
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_signals,
        ) as run:
            if taken_up:
                wait_until(lambda: not taken_up.exists(), "it has taken up what was left")
            return run.communicate(call("echo").decode())[1]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
