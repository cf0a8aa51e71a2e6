"""`otel-bridge replay` and `show`: what they print, and how they end."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner, Result

from otel_bridge.cli.main import cli
from otel_bridge.testing import CannedReply, Receiver, Request
from tests.cli.running import NEUTRAL
from tests.real.ports import reserve_port
from tests.recordings import Recording

TRACE = "806a05897b86490d9928679ab71012c1"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A recorded log of one session."""
    path = tmp_path / "server.log"
    path.write_bytes(Recording("happy").log)
    return path


def run(*words: str | Path, stdin: bytes | None = None) -> Result:
    """Runs a command to its end."""
    return CliRunner().invoke(cli, [str(word) for word in words], input=stdin)


def test_replay_prints_a_line_a_session_with_its_trace_id(log: Path) -> None:
    """Under a pipe the columns are separated by tabs: trace, name, language, calls, failed, seconds, end."""
    with Receiver() as receiver:
        result = run("replay", log, "--endpoint", receiver.endpoint)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split("\t") == [TRACE, "demo", "python", "18", "0", "4.341", "closed"]
    assert f"{receiver.spans[0].trace_id:032x}" == TRACE


def test_replay_reads_packed_files_and_folders(log: Path, tmp_path: Path) -> None:
    """The same session, whichever way it is given."""
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "server.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    lines = {run("replay", path, "--exporter", "console").stderr for path in (log, folder / "server.log.gz", folder)}

    assert len(lines) == 1


def test_the_console_exporter_needs_no_backend(log: Path) -> None:
    """Spans on standard output, a JSON object a line; the listing goes to standard error."""
    result = run("replay", log, "--exporter", "console")
    spans = [json.loads(line) for line in result.stdout.splitlines()]

    assert result.exit_code == 0
    assert spans[0]["name"] == "debug_session python"
    assert TRACE in result.stderr


def test_a_file_without_entries_is_said_and_fails(tmp_path: Path) -> None:
    """It is most likely not the server's own log."""
    (tmp_path / "other.log").write_text("hello\n")
    result = run("replay", tmp_path / "other.log", "--exporter", "console")

    assert result.exit_code == 1
    assert "no structured entry" in result.stderr


def test_what_cannot_be_drawn_is_named(log: Path, tmp_path: Path) -> None:
    """Files without entries, or one that cannot be read; with another one that can be drawn it needs no such word."""
    readme, notes, cut = tmp_path / "README.md", tmp_path / "notes.txt", tmp_path / "cut.log.gz"
    readme.write_text("# hello\n")
    notes.write_text("hello\n")
    cut.write_bytes(b"\x1f\x8b")

    assert str(run("show", readme, notes).exception) == (
        f"{readme}, {notes}: no structured entry in it; is it mcp-debugger's own log, at level info or debug?"
    )
    damaged = run("show", cut)
    assert (damaged.exit_code, damaged.stderr) == (
        1,
        f"otel-bridge: {cut} is damaged (the gzip data ends early)\n",
    )
    assert run("show", readme, log).exit_code == 0


def test_a_folder_without_a_log_is_said_and_fails(tmp_path: Path) -> None:
    """Nothing to export is no success, and folders below are not searched."""
    for command in ("replay", "show"):
        assert "no log in" in str(run(command, tmp_path).exception)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """With the next step, and without a traceback; a name that is empty (an unset variable of a script's) is none."""
    result = run("replay", tmp_path / "gone.log", "--exporter", "console")

    assert result.exit_code == 1
    assert "no such file" in str(result.exception)
    assert str(run("show", "").exception) == "a path is empty; name a log, or a folder of logs"


def test_a_log_and_its_packed_copy_count_once(log: Path) -> None:
    """The calls of a session are those it has; which file was left out is said, and nothing failed."""
    alone = run("replay", log, "--exporter", "console")
    packed = log.parent / "kept.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    both = run("replay", log, packed, "--exporter", "console")

    assert (both.exit_code, both.stdout) == (0, alone.stdout)
    assert f"otel-bridge: {packed} holds the same as {log} (size and both ends): it is read once\n" in both.stderr


def packed_by_tar(content: bytes, mode: Literal["w", "w:gz"]) -> bytes:
    """A tar archive with a log in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        member = tarfile.TarInfo("server.log")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("command", ["replay", "show"])
def test_a_log_in_a_form_that_is_not_read_is_named(command: str, log: Path) -> None:
    """By its first bytes, whatever its name is, with the command that helps; exit status 1."""
    content = log.read_bytes()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("server.log", content)
    for data, said in (
        (packed_by_tar(content, "w"), f"a tar archive; unpack it (tar -xf {log})"),
        (packed_by_tar(content, "w:gz"), f"a tar archive; unpack it (tar -xzf {log})"),
        (zipped.getvalue(), f"a zip archive; unpack it (unzip {log})"),
        (bz2.compress(content), f"packed with bzip2; pipe it in: bzip2 -dc {log} | otel-bridge replay -"),
        (lzma.compress(content), f"packed with xz; pipe it in: xz -dc {log}"),
        (b"\x28\xb5\x2f\xfd...", f"packed with zstd; pipe it in: zstd -dc {log}"),
        (content.decode().encode("utf-16"), f"UTF-16 text; pipe it in: iconv -f UTF-16 -t UTF-8 {log}"),
    ):
        log.write_bytes(data)
        result = run(command, log, *(["--exporter", "console"] if command == "replay" else []))

        assert result.exit_code == 1
        assert f"otel-bridge: {log} is {said}" in result.stderr
        assert "no structured entry" not in result.stderr


def test_a_loop_of_links_is_named(tmp_path: Path) -> None:
    """Nothing is wrong with its permissions."""
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)

    for command in ("replay", "show"):
        assert str(run(command, loop).exception) == (
            f"{loop} is a loop of symbolic links; name the file that it should lead to"
        )


def test_a_backend_that_is_away_fails_with_the_reason(log: Path) -> None:
    """After as much patience as the caller has; the log is still there, and the same command can be run again."""
    endpoint = f"http://127.0.0.1:{reserve_port()}"
    result = run("replay", log, "--endpoint", endpoint, "--patience", "0.5")

    assert result.exit_code == 1
    assert f"39 spans were not delivered to {endpoint}/v1/traces: connection refused; start" in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "otel-bridge: the files are as they were: run it again when a backend takes spans; "
        "what was delivered already shows once all the same"
    )


def test_trouble_is_said_with_the_end_of_the_patience(log: Path) -> None:
    """A replay does not promise to try for ever, also where it gives up at once."""
    away = f"http://127.0.0.1:{reserve_port()}"
    with Receiver([CannedReply(401)] * 50) as refusing:
        for endpoint in (away, refusing.endpoint):
            result = run("replay", log, "--endpoint", endpoint, "--patience", "3")

            assert "; gives up after 3 s without success (--patience)\n" in result.stderr
            assert "still trying" not in result.stderr


def test_next_step_fits_the_reason(log: Path) -> None:
    """Who was answered is not told to start a backend, nor that there was no answer when the time was up."""
    pause = threading.Event()

    def refuse_slowly(_: Request) -> CannedReply:
        pause.wait(0.1)
        return CannedReply(400)

    with Receiver([CannedReply(401)] * 50) as receiver:
        refused = run("replay", log, "--endpoint", receiver.endpoint).stderr
    with Receiver(refuse_slowly) as receiver:
        slow = run("replay", log, "--endpoint", receiver.endpoint, "--patience", "0.2").stderr

    assert "HTTP 401; check --header and OTEL_EXPORTER_OTLP_HEADERS\n" in refused
    assert "the time was up before all was answered\n" in slow
    assert "start a backend" not in refused + slow


def test_what_was_piped_in_is_to_be_piped_in_again(log: Path) -> None:
    """Standard input is no file that could be read again."""
    command = [sys.executable, "-m", "otel_bridge", "replay", "-", "--patience", "0.5", "--endpoint"]
    with log.open("rb") as piped:
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{reserve_port()}"],
            stdin=piped,
            capture_output=True,
            text=True,
            env=NEUTRAL,
            check=False,
            timeout=60,
        )

    assert done.returncode == 1
    assert "otel-bridge: pipe the same input in again when a backend takes spans; " in done.stderr


def test_what_only_a_person_can_mend_is_not_waited_for(log: Path) -> None:
    """A wrong key: no patience helps."""
    with Receiver([CannedReply(401)] * 50) as receiver:
        result = run("replay", log, "--endpoint", receiver.endpoint, "--patience", "3600")

    assert result.exit_code == 1
    assert "401" in result.stderr


def test_an_unknown_value_is_a_usage_error(log: Path) -> None:
    """Exit status 2, as of any wrong use."""
    assert run("replay", log, "--capture", "everything").exit_code == 2
    assert run("replay", log, "--idle-timeout", "soon").exit_code == 2


@pytest.mark.parametrize("patience", ["nan", "inf", "-inf", "1e308", "0", "-1", "soon", "31536001"])
def test_a_patience_that_no_clock_can_have_is_a_usage_error(patience: str, log: Path) -> None:
    """It would never end, or end at once; the message says what can be given."""
    result = run("replay", log, "--exporter", "console", f"--patience={patience}")

    assert result.exit_code == 2
    assert f"'{patience}' is no number of seconds above zero, at most 31,536,000 (a year)" in result.stderr


def test_a_replay_that_is_stopped_says_what_it_did(log: Path) -> None:
    """Ctrl-C: how much was delivered, that the rest was not, and what to do; exit status 130."""
    command = [sys.executable, "-m", "otel_bridge", "replay", str(log), "--endpoint"]
    is_asked, may_answer = threading.Event(), threading.Event()

    def reply(request: Request) -> CannedReply:
        is_asked.set()
        may_answer.wait(30)
        return CannedReply(401)

    with (
        Receiver(reply) as receiver,
        subprocess.Popen([*command, receiver.endpoint], stderr=subprocess.PIPE, text=True, env=NEUTRAL) as process,
    ):
        assert is_asked.wait(30)
        process.send_signal(signal.SIGINT)
        may_answer.set()
        err = process.communicate(timeout=60)[1]

    assert "otel-bridge: stopped before the end; spans delivered: 0; the files are as they were: run it again" in err
    assert "Traceback" not in err
    assert process.returncode == 130


def test_lines_that_are_no_entries_are_named_and_leave_the_status(log: Path) -> None:
    """All that can be delivered was: no second run could do more. The first is named, the others are counted."""
    log.write_bytes(b'"message":"tool:call"\n' * 12 + log.read_bytes())
    result = run("replay", log, "--exporter", "console")

    assert result.exit_code == 0
    assert f"{log}: skipped the line at byte 0: not JSON\n" in result.stderr
    assert "not JSON (the last of 11 more like this)" in result.stderr


def test_a_log_that_begins_in_the_middle_is_said(log: Path) -> None:
    """Its root would show twice if the whole log were replayed as well."""
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[300:]))

    assert "sessions that began before these files do: 1" in run("replay", log, "--exporter", "console").stderr


def test_show_draws_the_session_that_is_asked_for(tmp_path: Path) -> None:
    """By the start of its id; without one it draws the first and lists the others."""
    (tmp_path / "server.log").write_bytes(Recording("concurrent").log)
    first = run("show", tmp_path / "server.log")
    asked = run("show", tmp_path / "server.log", "--session", "733fc5e2")

    assert "7 sessions; draw another with --session ID" in first.stderr
    assert asked.stdout.startswith("sess-1 · python · trace 733fc5e2096c42848052")
    assert "begin with 99" in str(run("show", tmp_path / "server.log", "--session", "99").exception)


@pytest.mark.parametrize("command", ["replay", "show"])
def test_a_damaged_file_keeps_no_other_from_being_read(command: str, log: Path) -> None:
    """It is named, what can be unpacked of it is used, and the exit status says that something is missing."""
    folder = log.parent
    (folder / "cut.log.gz").write_bytes(gzip.compress(Recording("errors").log)[:9_000])
    (folder / "torn.log.gz").write_bytes(b"\x1f\x8b and no more")
    with Receiver() as receiver:
        where = ["--endpoint", receiver.endpoint] if command == "replay" else ["--session", TRACE]
        result = run(command, folder, *where)

    assert result.exit_code == 1
    assert f"{folder / 'cut.log.gz'} is damaged after" in result.stderr
    assert f"{folder / 'torn.log.gz'} is damaged" in result.stderr
    if command == "replay":
        assert {TRACE, "816be0ce929a42ddb0522c8a4e03ba68"} <= {f"{span.trace_id:032x}" for span in receiver.spans}
    else:
        assert TRACE in result.stdout
