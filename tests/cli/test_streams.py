"""Standard streams that are closed, full, or read by nobody any more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from otel_bridge.testing import Receiver
from tests.cli.running import NEUTRAL, Ran
from tests.real.bridge import TailProcess
from tests.recordings import Recording
from tests.waiting import wait_until

FULL = "otel-bridge: cannot write standard output: No space left on device\n"
CLOSED = "otel-bridge: cannot write standard output: it is closed\n"
COMMANDS = (
    "--help",
    "--version",
    "show LOG",
    "replay LOG --endpoint ENDPOINT",
    "replay LOG --exporter console",
    "demo",
    "doctor LOG --endpoint ENDPOINT",
    "status",
    "status --json",
    "resend",
    "completion bash",
)


def in_shell(line: str, folder: Path) -> Ran:
    """Run a line of the shell, in which BRIDGE is the command and LOG a log, with a backend at ENDPOINT."""
    log = folder / "server.log"
    log.write_bytes(Recording("happy").log)
    with Receiver() as receiver:
        for name, value in (
            ("BRIDGE", f"{sys.executable} -m otel_bridge"),
            ("LOG", log),
            ("ENDPOINT", receiver.endpoint),
        ):
            line = line.replace(name, str(value))
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            capture_output=True,
            text=True,
            env={**NEUTRAL, "OTEL_BRIDGE_STATE_DIR": str(folder / "state")},
            check=False,
            timeout=60,
        )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_standard_output_that_cannot_be_written_is_one_line(command: str, tmp_path: Path) -> None:
    """Said once, with the reason, and the exit status is 1: what the command is for did not happen."""
    for target, said in ((">/dev/full", FULL), (">&-", CLOSED)):
        ran = in_shell(f"BRIDGE {command} {target}", tmp_path)

        assert ran.status == 1, ran.err
        assert ran.err.endswith(said)
        assert ran.err.count("cannot write") == 1
        assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_left_is_no_error_to_speak_of(command: str, tmp_path: Path) -> None:
    """It has what it wanted."""
    ran = in_shell(f"BRIDGE {command} | true", tmp_path)

    assert not [word for word in ("Traceback", "Exception", "Errno", "cannot write") if word in ran.err]


@pytest.mark.parametrize("target", ["2>/dev/full", "2>&-", "2> >(true)"])
@pytest.mark.parametrize("command", ["replay LOG --endpoint ENDPOINT", "show LOG", "demo"])
def test_words_that_cannot_be_said_change_nothing(command: str, target: str, tmp_path: Path) -> None:
    """Neither the exit status nor what is on standard output."""
    plain, mute = (in_shell(f"BRIDGE {command} {words}", tmp_path) for words in ("2>/dev/null", target))

    assert (mute.status, mute.out) == (0, plain.out)


@pytest.mark.parametrize("target", ["2>/dev/full", "2>&-", "2> >(head -1)"])
def test_a_tail_delivers_without_its_words(target: str, tmp_path: Path) -> None:
    """Also what it would say later: lines that are skipped, bulletins, the last word."""
    log = tmp_path / "server.log"
    log.write_bytes(b'"message":"tool:call"\n' * 3 + Recording("happy").log)
    with Receiver() as receiver:
        bridge = TailProcess(
            tmp_path / "bridge",
            log,
            "--from",
            "beginning",
            "--endpoint",
            receiver.endpoint,
            wrapped=("bash", "-c", f'exec "$0" "$@" {target}'),
        )
        with bridge:
            receiver.wait_for(lambda so_far: len(so_far.spans) == 39, 30)
            with log.open("ab") as more:
                more.write(b'"message":"tool:call"\n' + Recording("secrets").log)
            receiver.wait_for(lambda so_far: len({span.trace_id for span in so_far.spans}) > 1, 30)
            wait_until(lambda: sum(bridge.status.malformed_lines.values()) > 3, "what was not said is in the status")
            assert bridge.stop() == 0


def test_a_tail_ends_where_the_spans_it_shows_cannot_be_written(tmp_path: Path) -> None:
    """The console exporter's spans were not delivered then: nothing goes on as if they were."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)
    for target, said in ((">/dev/full", FULL), (">&-", CLOSED), ("> >(true)", "")):
        line = f"BRIDGE tail LOG --from beginning --exporter console {target}"
        ran = in_shell(line, tmp_path)

        assert ran.status == 1
        assert ran.err.endswith(said)
        assert "Traceback" not in ran.err


def test_a_closed_standard_input_is_one_line(tmp_path: Path) -> None:
    """With the next step."""
    ran = in_shell("BRIDGE replay - --endpoint ENDPOINT <&-", tmp_path)

    assert (ran.status, ran.err) == (
        1,
        "otel-bridge: cannot read standard input: it is closed; pipe a log into it\n",
    )


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """What is meant for the terminal would be written into it."""
    program = (
        "import os; from otel_bridge.cli.streams import guard_streams; guard_streams();"
        f"os.write(os.open({str(tmp_path / 'opened')!r}, os.O_CREAT | os.O_RDWR), b'%d' % os.open('/', os.O_RDONLY))"
    )
    subprocess.run(["bash", "-c", f'{sys.executable} -c "{program}" <&- >&- 2>&-'], check=True, timeout=60)

    assert int((tmp_path / "opened").read_text()) > 2
