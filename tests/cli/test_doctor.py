"""`otel-bridge doctor`: each check, and what to do next."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from otel_bridge.cli.doctor_backend import check_endpoint, check_settings, on_reply
from otel_bridge.cli.doctor_state import check_state, look_at_state
from otel_bridge.cli.findings import Finding, Level
from otel_bridge.export.reply import GrpcReply, HttpReply, NoReply, NotSent, Reply
from otel_bridge.sessions.capture import Capture
from otel_bridge.settings import resolve_export_settings
from otel_bridge.state.commit import Commit, RunStatus
from otel_bridge.state.place import DATABASE
from otel_bridge.state.store import StateStore
from otel_bridge.testing import CannedReply, Receiver
from otel_bridge.wrapper.run_folder import RunFolder
from tests.cli.found import CALL, ERROR, only, write
from tests.cli.letters import bury
from tests.cli.running import run, run_on_terminal
from tests.state.commits import checkpoint

# endpoint and settings


@pytest.mark.parametrize(
    ("reply", "level", "said"),
    [
        (HttpReply(200), Level.OK, "answers OTLP"),
        (GrpcReply("OK"), Level.OK, "answers OTLP"),
        (HttpReply(200, "application/json", b'{"partialSuccess":{"errorMessage":"old"}}'), Level.WARN, "says: old"),
        (HttpReply(200, "text/html; charset=utf-8", b"<html>"), Level.FAIL, "a web page"),
        (HttpReply(404), Level.FAIL, "HTTP 404"),
        (HttpReply(401), Level.FAIL, "HTTP 401"),
        (HttpReply(302, location="http://login/"), Level.FAIL, "redirect to http://login/"),
        (HttpReply(400, "text/plain", b"empty"), Level.WARN, "without spans: HTTP 400: empty"),
        (HttpReply(503), Level.FAIL, "takes nothing now: HTTP 503"),
        (NoReply("connection refused"), Level.FAIL, "takes nothing now: connection refused"),
        (NotSent("no such certificate"), Level.FAIL, "no such certificate"),
        (GrpcReply("UNAUTHENTICATED"), Level.FAIL, "gRPC UNAUTHENTICATED"),
    ],
)
def test_answer_of_the_endpoint_is_read(reply: Reply, level: Level, said: str) -> None:
    """Every kind of answer has its level, its words, and a next step unless all is well."""
    finding = on_reply("http://backend", reply)

    assert finding.level is level
    assert said in finding.text
    assert bool(finding.next_step) == (level is not Level.OK)


def test_setting_that_keeps_from_asking_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong before anything can be sent is a finding as any other, not the end of the examination."""
    monkeypatch.setenv("http_proxy", "http://u:s3cret#x@proxy")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    (finding,) = check_endpoint(resolve_export_settings({}, endpoint="http://backend.invalid:4318"))

    assert (finding.level, finding.topic) == (Level.FAIL, "setting")
    assert finding.text == "http_proxy: not clear where the user and password end"
    assert "percent-encoded" in finding.next_step


def test_endpoint_is_sent_an_empty_request() -> None:
    """An endpoint that takes OTLP over HTTP is asked once, with no span."""
    with Receiver() as receiver:
        settings = resolve_export_settings({}, endpoint=receiver.endpoint, headers=["authorization=x"])

        finding = only([*check_endpoint(settings)])

        assert (finding.level, finding.subject) == (Level.OK, f"{receiver.endpoint}/v1/traces")
        assert [request.spans for request in receiver.requests] == [()]
        assert receiver.requests[0].headers["authorization"] == "x"


def test_proxy_in_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment is named without its password, because it is easily not meant."""
    with Receiver() as receiver:
        monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{receiver.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

        findings = [*check_endpoint(resolve_export_settings({}, endpoint="http://backend.invalid:4318"))]

    assert findings[0].level is Level.WARN
    assert f"proxy http://127.0.0.1:{receiver.port}" in findings[0].text
    assert "NO_PROXY" in findings[0].next_step
    assert "secret" not in repr(findings)


def test_doubtful_settings_are_warnings() -> None:
    """A timeout that can only be milliseconds, and a port for the other protocol, are pointed out."""
    environ = {"OTEL_EXPORTER_OTLP_TIMEOUT": "10000", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317"}

    found = [*check_settings(resolve_export_settings(environ))]

    assert [one.level for one in found] == [Level.WARN, Level.WARN]
    assert "4317" in found[0].text
    assert "write 10" in found[1].text


def test_console_needs_no_endpoint() -> None:
    """With --exporter console nothing is sent anywhere."""
    settings = resolve_export_settings({}, exporter="console")

    assert [*check_endpoint(settings)] == []
    assert only([*check_settings(settings)]).level is Level.OK


# state


def state(folder: Path) -> list[Finding]:
    """The findings on a state folder."""
    return [*check_state(folder, look_at_state(folder))]


def test_state_that_is_not_there_yet_can_be_written(tmp_path: Path) -> None:
    """A folder to come is ok, and is not made."""
    finding = only(state(tmp_path / "a" / "b"))

    assert (finding.level, finding.text) == (Level.OK, "nothing there yet; it can be written")
    assert list(tmp_path.iterdir()) == []


def test_sound_state_says_whether_a_bridge_runs(tmp_path: Path) -> None:
    """The process is named while one runs."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
        assert only(state(tmp_path)).text == f"sound, and can be written; a bridge runs (process {os.getpid()})"
    assert only(state(tmp_path)).text == "sound, and can be written; no bridge runs"


def test_running_bridge_that_waits_or_holds_files_is_a_warning(tmp_path: Path) -> None:
    """What it waits for, and how many bytes of deleted files it keeps, with what ends it."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit(run=RunStatus(1, "http://a", "HTTP 503: busy", 2, 1000)))

        found = state(tmp_path)

    assert [one.level for one in found] == [Level.OK, Level.WARN, Level.WARN]
    assert found[1].text == "the bridge waits: HTTP 503: busy"
    assert found[2].text == "the bridge holds 2 deleted files until they are read, 1000 bytes"


def test_damaged_state_is_a_failure(tmp_path: Path) -> None:
    """Every page is looked at: damage that only the next start would meet is found, and nothing is changed."""
    with StateStore.open(tmp_path) as store:
        # A page that a look at files, sessions and counters does not come by.
        (page,) = store._connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'occurrence'").fetchone()
    path = tmp_path / DATABASE
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))
    before = path.read_bytes()

    finding = only(state(tmp_path))

    assert finding.level is Level.FAIL
    assert f"{path} is damaged" in finding.text
    assert finding.next_step.startswith("move it away to begin anew")
    assert path.read_bytes() == before


@pytest.mark.parametrize("below", ["", "below"])
def test_folder_that_cannot_be_used_is_a_failure(tmp_path: Path, below: str) -> None:
    """A file where the folder should be, or should be made, is named with the flag for another."""
    write(tmp_path / "file", "x")

    finding = only(state(tmp_path / "file" / below))

    assert finding.level is Level.FAIL
    assert "--state-dir" in finding.next_step


def test_kept_refusals_are_a_warning(tmp_path: Path) -> None:
    """Dead letters are counted, with the command that sends them again."""
    StateStore.open(tmp_path).close()
    bury(tmp_path, [1], [2])

    found = state(tmp_path)

    assert [one.level for one in found] == [Level.OK, Level.WARN]
    assert (found[1].text, found[1].next_step) == ("2 refused spans are kept", "send them again: otel-bridge resend")


def test_run_that_was_not_delivered_is_a_warning(tmp_path: Path) -> None:
    """With what waits, and that the next run delivers it; one that lives is well, and said to be there."""
    runs = [RunFolder.create(tmp_path, None, 1, Capture.FULL) for _ in range(2)]
    (runs[0].path / "server.log").write_text("xyz")
    runs[0].release()

    found = {one.subject: one for one in state(tmp_path)}

    assert found[str(tmp_path)].text == "no state of `otel-bridge tail` in it; it can be written"
    over, alive = (found[str(one.path)] for one in runs)
    assert (over.level, alive.level) == (Level.WARN, Level.OK)
    assert over.text == f"a run that ended left 3 bytes of {runs[0].path}/server.log and 0 open sessions"
    assert "otel-bridge run" in over.next_step
    assert alive.text == "a run goes on; it delivers itself what waits: at most what it noted of its last calls"
    runs[1].release()


def test_state_beside_a_run_does_not_say_that_no_bridge_runs(tmp_path: Path) -> None:
    """A run is a bridge too: only `tail` is said not to run."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
    run = RunFolder.create(tmp_path, None, 1, Capture.FULL)

    assert state(tmp_path)[0].text == "sound, and can be written; no `otel-bridge tail` runs"
    run.release()


def test_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room left is said before a commit fails."""
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    found = state(tmp_path)

    assert (found[-1].level, found[-1].text) == (Level.WARN, "only 1,000 bytes are free on its disk")


# the command


def test_all_well_is_exit_0(tmp_path: Path) -> None:
    """With a good log, endpoint and state each finding is a line of five fields, and the exit status is 0."""
    path = write(tmp_path / "server.log", CALL)
    with Receiver() as receiver:
        ran = run("doctor", path, "--state-dir", tmp_path / "state", "--endpoint", receiver.endpoint)

    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert (ran.status, ran.err) == (0, "")
    assert [line[:2] for line in lines] == [
        ["ok", "program"],
        ["ok", "log"],
        ["ok", "setting"],
        ["ok", "endpoint"],
        ["ok", "state"],
    ]
    assert {len(line) for line in lines} == {5}


def test_one_failure_is_exit_1_and_the_rest_is_still_checked(tmp_path: Path) -> None:
    """A setting that cannot be used is a finding like others; a header's value is in none."""
    path = write(tmp_path / "se\x1b[2Jrver.log", CALL)

    ran = run("doctor", path, "--state-dir", tmp_path / "state", "--header", "hidden-value", "--json")

    shown = json.loads(ran.out)
    assert ran.status == 1
    assert shown["ok"] is False
    assert [(one["level"], one["topic"]) for one in shown["findings"]] == [
        ("ok", "program"),
        ("ok", "log"),
        ("fail", "setting"),
        ("ok", "state"),
    ]
    assert shown["findings"][1]["subject"] == str(path)
    assert "hidden-value" not in ran.out + ran.err
    assert "\x1b" not in ran.out


def test_user_info_of_the_endpoint_is_not_shown(tmp_path: Path) -> None:
    """A password in the URL is in no output."""
    path = write(tmp_path / "server.log", CALL)
    with Receiver([CannedReply(401)]) as receiver:
        endpoint = receiver.endpoint.replace("//", "//user:secret@")
        ran = run("doctor", path, "--state-dir", tmp_path / "state", "--endpoint", endpoint)

    assert ran.status == 1
    assert "HTTP 401" in ran.out
    assert "secret" not in ran.out + ran.err


def test_terminal_shows_what_to_do_below_each_finding(tmp_path: Path) -> None:
    """People see the next step under the finding, names escaped, and a count at the end."""
    path = write(tmp_path / "se\x1b[2Jrver[red].log", ERROR)

    ran = run_on_terminal("doctor", path, "--state-dir", tmp_path / "state", "--exporter", "console", columns=300)

    lines = ran.out.splitlines()
    assert ran.status == 0
    assert re.match(r"ok +program otel-bridge: [\d.]+, Python 3\.[\d.rc]+, core (in Python|compiled)$", lines[0])
    assert lines[1].startswith(f"warn  log {tmp_path}/se\\x1b[2Jrver[red].log: structured")
    assert lines[2].strip() == "start the server with --log-level info (or debug)"
    assert lines[-1] == "3 ok, 1 to look at, 0 to mend"
