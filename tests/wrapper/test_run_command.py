"""`otel-bridge run` from outside: what a client and a server see of it is what they would see without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_bridge.sources.claims import claimed_paths
from otel_bridge.sources.processes import running
from otel_bridge.testing import CannedReply, Receiver
from tests.waiting import wait_until
from tests.wrapper.wrapped import COMMAND, Wrapped

SERVER = (sys.executable, str(Path(__file__).parent / "server.py"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_servers_exit_code_is_the_wrappers(tmp_path: Path, receiver: Receiver, code: int) -> None:
    """Whatever it is; the call that it never answered is a span that says so."""
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint) as run:
        run.send({"id": 1, "method": "tools/call", "params": {"name": "exit", "arguments": {"code": code}}})
        assert run.stdout.read() == b""
        assert run.process.wait() == code
        assert [span.attributes["otel_bridge.outcome"] for span in receiver.spans] == ["unanswered"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_server_that_a_signal_ends_ends_the_wrapper_alike(tmp_path: Path, number: signal.Signals) -> None:
    """The client sees the very signal."""
    with Wrapped(tmp_path, ["sh", "-c", f"kill -{number.value} $$"]) as run:
        assert run.process.wait() == -number


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"])
def test_signals_reach_the_server(tmp_path: Path, receiver: Receiver, name: str) -> None:
    """The wrapper does nothing about them but to pass them on."""
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint) as run:
        run.call(1, "initialize")

        run.process.send_signal(signal.Signals[name])

        assert json.loads(run.line())["params"] == {"name": name}
        assert run.call(2, "tools/call", name="echo", arguments={"text": "hi"})["id"] == 2
        assert run.close() == 0


def test_what_the_client_ignores_the_server_ignores(tmp_path: Path) -> None:
    """A wrapper under nohup does not make its server hear the hang-up."""
    words = [*COMMAND, "--endpoint", "http://127.0.0.1:9", "--state-dir", str(tmp_path), "--", *SERVER]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        text=True,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write('{"id":1,"method":"initialize"}\n')
        run.stdin.flush()
        run.stdout.readline()
        run.send_signal(signal.SIGHUP)
        run.stdin.write('{"id":2,"method":"initialize"}\n')
        run.stdin.close()

        assert json.loads(run.stdout.readline())["id"] == 2


def test_what_the_client_hands_down_reaches_the_server(tmp_path: Path) -> None:
    """Its environment, its folder, and descriptors beyond the three."""
    theirs, ours = os.pipe()
    script = f"import os; print('in', os.getcwd(), 'with', os.environ['GIVEN']); os.write({ours}, b'more')"
    words = [*COMMAND, "--endpoint", "http://127.0.0.1:9", "--", sys.executable, "-c", script]
    done = subprocess.run(
        words, pass_fds=(ours,), env={**os.environ, "GIVEN": "this"}, cwd=tmp_path, capture_output=True, check=True
    )
    os.close(ours)

    assert done.stdout == f"in {tmp_path} with this\n".encode()
    assert os.read(theirs, 100) == b"more"
    os.close(theirs)


def test_spans_on_the_console_are_not_on_the_clients_pipe(tmp_path: Path) -> None:
    """Standard output is the server's alone."""
    with Wrapped(tmp_path, SERVER, "--exporter", "console") as run:
        answer = run.call(1, "tools/call", name="echo", arguments={"text": "hi"})
        assert answer["id"] == 1
        run.stdin.close()
        assert run.stdout.read() == b""
        assert run.process.wait() == 0
        assert "tools/call echo" in run.said


def test_the_end_of_the_clients_output_reaches_the_server(tmp_path: Path) -> None:
    """The server ends by itself, as it would without us; nothing of ours was on its output."""
    with Wrapped(tmp_path, ["cat"]) as run:
        run.stdin.write(b"one\ntwo")
        run.stdin.close()
        assert run.stdout.read() == b"one\ntwo"
        assert run.process.wait() == 0


def test_a_server_that_closes_its_output_lives_on(tmp_path: Path) -> None:
    """The client sees the end of the output at once, and the exit code later."""
    with Wrapped(tmp_path, ["sh", "-c", "echo out; exec >&-; read line; exit 3"]) as run:
        assert run.stdout.read() == b"out\n"
        assert run.process.poll() is None
        run.stdin.write(b"go\n")
        assert run.process.wait() == 3


def test_a_server_that_closes_its_input_breaks_the_clients_pipe(tmp_path: Path) -> None:
    """The client gets the error that it would get without us."""
    with Wrapped(tmp_path, ["sh", "-c", "exec <&-; echo closed; exec sleep 60"]) as run:
        assert run.line() == b"closed\n"

        def is_broken() -> bool:
            try:
                run.stdin.write(b"anybody there?\n")
            except BrokenPipeError:
                return True
            return False

        assert wait_until(is_broken, "the pipe is broken")


def test_a_client_that_closes_its_input_breaks_the_servers_pipe(tmp_path: Path) -> None:
    """A server that goes on writing ends by SIGPIPE, as it would without us."""
    with Wrapped(tmp_path, ["yes"]) as run:
        assert run.line() == b"y\n"
        run.stdout.close()
        assert run.process.wait() == -signal.SIGPIPE


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    """A message with the next step, and a shell's exit status."""
    with Wrapped(tmp_path, ["no-such-mcp-server", "stdio"]) as run:
        assert run.stdout.read() == b""
        assert run.process.wait() == 127
        assert "otel-bridge: cannot start `no-such-mcp-server`" in run.said


def test_a_command_that_is_no_program(tmp_path: Path) -> None:
    """The same, of a file that cannot be run."""
    (tmp_path / "mcp-debugger").write_text("no program")
    with Wrapped(tmp_path, [tmp_path / "mcp-debugger"]) as run:
        assert run.process.wait() == 126
        assert "permission denied" in run.said
        assert not list(run.state.glob("runs/*"))


@pytest.mark.parametrize(
    ("options", "names"), [(["--endpoint", "nonsense"], "--endpoint"), (["--capture", "all"], "--capture")]
)
def test_an_option_that_cannot_be_used_is_said_before_anything_starts(
    tmp_path: Path, options: list[str], names: str
) -> None:
    """Exit status 2; the server was not started."""
    done = subprocess.run(
        [*COMMAND, *options, "--", "touch", str(tmp_path / "started")], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert names in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "started").exists()


def test_garbage_on_the_servers_output_passes(tmp_path: Path, receiver: Receiver) -> None:
    """It is said, once, and the calls around it are spans."""
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint) as run:
        run.send({"id": 1, "method": "tools/call", "params": {"name": "garbage"}})
        lines = [run.line() for _ in range(4)]
        assert run.close() == 0

        assert lines[:3] == [b"this is no JSON\n", b"{half a \x00 line}\n", b"\n"]
        assert json.loads(lines[3])["id"] == 1
        assert [span.name for span in receiver.spans] == ["tools/call garbage"]
        assert run.said.count("no JSON-RPC message") == 2  # at once, and how many in the end
        assert "\x00" not in run.said


def test_no_backend_no_difference(tmp_path: Path) -> None:
    """Calls pass, what could not be delivered is said, and nothing stays behind waiting for the backend."""
    with Receiver(lambda request: CannedReply(503)) as away, Wrapped(tmp_path, SERVER, endpoint=away.endpoint) as run:
        run.call(0, "tools/call", name="echo")
        away.wait_for(lambda r: r.requests)
        for number in range(1, 50):  # each a batch of its own, and more than may wait at once
            answer = run.call(number, "tools/call", name="slow", arguments={"seconds": 0.01})
            assert answer["id"] == number
        waits = f"delivery to {away.endpoint}/v1/traces waits"
        wait_until(lambda: waits in run.said, "it is said while the server still runs")
        assert run.close() == 0
        wait_until(lambda: not run.pids(), "all of it has ended")
        assert f"not all was delivered to {away.endpoint}/v1/traces (" in run.said
        assert "lost, because they stand in no log" in run.said


@pytest.mark.parametrize("victim", ["worker", "pump"])
def test_a_log_is_claimed_as_long_as_one_of_the_two_lives(tmp_path: Path, receiver: Receiver, victim: str) -> None:
    """So that no `tail` exports what the run, or the next one, does."""
    folder = tmp_path / "mcp-debugger"
    folder.mkdir()
    (folder / "server.py").write_bytes(Path(SERVER[1]).read_bytes())
    command: list[str | Path] = [sys.executable, folder / "server.py"]
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Wrapped(tmp_path / "run", command, endpoint=receiver.endpoint, env=runtime) as run:
        run.call(1, "tools/call", name="slow", arguments={"seconds": 0})
        worker = run.worker()
        receiver.wait_for(lambda r: r.spans)
        (log,) = (str(path / "server.log") for path in run.state.glob("runs/*"))
        os.kill(worker, signal.SIGSTOP)  # it would end with the pump
        os.kill(worker if victim == "worker" else run.process.pid, signal.SIGKILL)

        wait_until(lambda: (run.process.poll() is not None) if victim == "pump" else not running(worker), "it is gone")
        assert log in claimed_paths(tmp_path / "otel-bridge" / "claims")
        os.kill(worker, signal.SIGCONT) if victim == "pump" else run.close()
        wait_until(lambda: not claimed_paths(tmp_path / "otel-bridge" / "claims"), "nobody claims it any more")


def test_a_worker_that_is_killed_stops_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """The pipe goes on; it is said once."""
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint) as run:
        run.call(1, "initialize")
        os.kill(run.worker(), signal.SIGKILL)
        for number in range(2, 50):
            assert run.call(number, "tools/call", name="echo")["id"] == number
        assert run.close() == 0
        assert run.said.count("the exporting process has failed") == 1


def test_a_state_folder_that_cannot_be_used_stops_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """The debugger runs with the log that it would have without us, and its calls are exported."""
    (tmp_path / "state").write_text("a file")
    folder = tmp_path / "mcp-debugger"
    folder.mkdir()
    (folder / "server.py").write_bytes(Path(SERVER[1]).read_bytes())
    with Wrapped(tmp_path, [sys.executable, folder / "server.py"], endpoint=receiver.endpoint) as run:
        assert run.call(1, "tools/call", name="echo")["id"] == 1
        assert run.close() == 0
        assert "state folder" in run.said
        assert [span.name for span in receiver.spans] == ["tools/call echo"]


def full_pipe() -> tuple[int, int]:
    """A pipe that takes no more, and is not read."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    return read_end, write_end


def test_spans_that_nobody_reads_hold_up_no_end(tmp_path: Path) -> None:
    """They go to a stderr that takes no more: client and server notice nothing, and the worker does not stay behind."""
    read_end, write_end = full_pipe()
    with Wrapped(tmp_path, SERVER, "--exporter", "console", stderr=write_end) as run:
        os.close(write_end)
        for number in range(20):
            assert run.call(number, "tools/call", name="echo")["id"] == number
        assert run.close() == 0
        wait_until(lambda: not run.pids(), "all of it has ended")
    os.close(read_end)


def test_nobody_reads_the_errors(tmp_path: Path, receiver: Receiver) -> None:
    """A client that lets our stderr fill up holds up nothing."""
    read_end, write_end = full_pipe()
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint, stderr=write_end) as run:
        os.close(write_end)
        run.call("first", "initialize")
        os.kill(run.worker(), signal.SIGKILL)  # which the pump would say
        for number in range(20):
            run.send({"id": number, "method": "tools/call", "params": {"name": "garbage"}})
            lines = [run.line() for _ in range(4)]
            assert json.loads(lines[-1])["id"] == number
        assert run.close() == 0
    os.close(read_end)


def test_a_project_cannot_put_its_modules_into_the_worker(tmp_path: Path, receiver: Receiver) -> None:
    """A client starts its servers in the user's project, where anything can lie."""
    (tmp_path / "orjson.py").write_text("raise SystemExit('taken from the project')")
    with Wrapped(tmp_path, SERVER, endpoint=receiver.endpoint) as run:
        run.call(1, "tools/call", name="echo")
        assert run.close() == 0
        assert len(receiver.spans) == 1


def test_two_runs_at_once_with_one_log_are_told_of_it(tmp_path: Path, receiver: Receiver) -> None:
    """By the second one, at its start; once the first is over, there is nothing to tell."""
    folder = tmp_path / "mcp-debugger"
    folder.mkdir()
    (folder / "server.py").write_bytes(Path(SERVER[1]).read_bytes())
    command: list[str | Path] = [sys.executable, folder / "server.py", "--log-file", tmp_path / "shared.log"]
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}

    def start(name: str) -> Wrapped:
        return Wrapped(tmp_path / name, command, endpoint=receiver.endpoint, env=runtime)

    with start("one") as one:
        one.call(1, "initialize")
        with start("two") as two:
            two.call(1, "initialize")
            assert f"another run follows {tmp_path}/shared.log too" in two.said
            two.close()
        one.close()
        assert "another run" not in one.said
    with start("three") as three:
        three.call(1, "initialize")
        assert "another run" not in three.said
        three.close()


@pytest.mark.parametrize("environ", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_an_export_that_is_switched_off_leaves_the_pipe(
    tmp_path: Path, receiver: Receiver, environ: dict[str, str]
) -> None:
    """The server runs as it would without us, with no log, no worker and no folder of ours."""
    folder = tmp_path / "mcp-debugger"
    folder.mkdir()
    (folder / "server.py").write_bytes(Path(SERVER[1]).read_bytes())
    with Wrapped(tmp_path, [sys.executable, folder / "server.py"], endpoint=receiver.endpoint, env=environ) as run:
        assert run.call(1, "tools/call", name="echo")["id"] == 1
        assert len(run.pids()) == 2
        assert run.close() == 0
        assert run.said.endswith(": nothing is exported\n")
    assert not run.state.exists()
    assert receiver.requests == []


def test_the_environment_can_choose_the_console(tmp_path: Path) -> None:
    """As the flag does: spans on standard error."""
    with Wrapped(tmp_path, SERVER, env={"OTEL_TRACES_EXPORTER": "console"}) as run:
        run.call(1, "tools/call", name="echo")
        assert run.close() == 0
        assert '"name":"tools/call echo"' in run.said
