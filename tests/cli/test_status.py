"""`otel-bridge status`: what is shown of a state."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from otel_bridge.cli.progress import FollowedFile, Kept, followed_files, kept_dead_letters
from otel_bridge.cli.runs import known_runs
from otel_bridge.cli.status_report import Status, tab_separated
from otel_bridge.errors import StateError
from otel_bridge.export.dead_letters import DeadLetter, DeadLetters
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.saved import Json
from otel_bridge.sessions.span import Span, SpanKind
from otel_bridge.state.commit import Commit, Counts, LastError, RunStatus
from otel_bridge.state.place import DATABASE, DEAD_LETTERS
from otel_bridge.state.store import StateStore
from otel_bridge.wrapper.run_folder import DESCRIPTION, LOCK, RunFolder, dead_runs, run_folders
from tests.cli.letters import bury
from tests.cli.running import run, run_on_terminal
from tests.state.commits import changes, checkpoint, open_session

EVIL = "\x1b[2J\t[red]name[/red]\u202e\n"
SESSION = "11111111-2222-3333-4444-555555555555"


def point_of(file: Path, offset_bytes: int, *, inode_of: Path | None = None, ended: bool = False) -> Json:
    """A checkpoint of a file that is there."""
    found = (inode_of or file).stat()
    return checkpoint("server.log-1", offset_bytes=offset_bytes, path=str(file)) | {
        "device": found.st_dev,
        "inode": found.st_ino,
        "size_bytes": found.st_size,
        "last_entry_ms": 1_700_000_000_000,
        "ended": ended,
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of 1,000 bytes."""
    file = tmp_path / "server.log"
    file.write_bytes(b"x" * 999 + b"\n")
    return file


@pytest.fixture
def folder(tmp_path: Path, log: Path) -> Path:
    """The state of a bridge that followed the log up to byte 400 and met all that can be shown."""
    folder = tmp_path / "state"
    now_ms = int(time.time() * 1000)
    with StateStore.open(folder) as store:
        store.commit(
            Commit(
                {"server.log-1#1": point_of(log, 400)},
                {"server.log-1": changes({SESSION: open_session(EVIL, now_ms - 60_000)})},
                counts=Counts(1234, 3, {"gap": 10}, {"not JSON": 2}, 1),
                last_error=LastError(now_ms - 5_000, f"HTTP 503: {EVIL}"),
                run=RunStatus(now_ms, "http://localhost:4318/v1/traces", "HTTP 503: busy", 1, 55),
            )
        )
    return folder


def test_nothing_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    """Without a state it says so, names the folder and the next step, and makes no folder; exit status 0."""
    folder = tmp_path / "none"

    for ran in (run("status", "--state-dir", folder), run_on_terminal("status", "--state-dir", folder, columns=500)):
        assert ran == (
            0,
            f"no bridge has kept state in {folder}; "
            "start one with `otel-bridge tail`, or name its folder with --state-dir\n",
            "",
        )
    assert not folder.exists()


def test_dead_letters_are_shown_though_the_state_is_gone(tmp_path: Path) -> None:
    """Who moves a damaged state away still learns what waits to be sent again, and what of it cannot be read."""
    dead_letters = bury(tmp_path, [1], [2, 3], refused_count=2)
    with dead_letters.path.open("ab") as file:
        file.write(b'{"refused": {"cou')

    shown = json.loads(run("status", "--json", "--state-dir", tmp_path).out)
    lines = [line.split("\t") for line in run("status", "--state-dir", tmp_path).out.splitlines()]
    tables = run_on_terminal("status", "--state-dir", tmp_path, columns=200)

    assert shown["dead_letters"] == {"letters": 2, "spans": 4, "broken_lines": 1}
    assert ["dead_letters", "2", "4", "1"] in lines
    assert "4 kept, `otel-bridge resend` sends them again; 1 line of the dead letters cannot be read" in tables.out


def test_json_without_a_state_has_the_same_names_as_with_one(tmp_path: Path, folder: Path) -> None:
    """Scripts need no case of their own for a bridge that never ran."""
    empty = json.loads(run("status", "--json", "--state-dir", tmp_path / "none").out)

    assert empty.keys() == json.loads(run("status", "--json", "--state-dir", folder).out).keys()
    assert empty["running"] is False
    assert empty["files"] == []


def test_json_tells_everything(folder: Path, log: Path) -> None:
    """Files with offset, size and lag, sessions, counts, the last error; plain numbers, and nothing outside ASCII."""
    ran = run("status", "--json", "--state-dir", folder)

    shown = json.loads(ran.out)
    assert ran.status == 0
    assert ran.out.isascii()
    assert "\x1b" not in ran.out
    assert shown["files"] == [
        {
            "path": str(log),
            "chain": "server.log-1",
            "offset_bytes": 400,
            "size_bytes": 1000,
            "lag_bytes": 600,
            "last_entry_ms": 1_700_000_000_000,
            "is_gone": False,
        }
    ]
    assert shown["lag_bytes"] == 600
    assert shown["lag_s"] > 0
    (session,) = shown["sessions"]
    assert (session["session_id"], session["name"]) == (SESSION, EVIL)
    assert (shown["delivered_spans"], shown["refused_spans"], shown["lost_spans"]) == (1234, 3, 1)
    assert shown["lost_bytes"] == {"gap": 10}
    assert shown["malformed_lines"] == {"not JSON": 2}
    assert shown["last_error"]["message"] == f"HTTP 503: {EVIL}"


def test_piped_output_is_a_line_a_fact_with_log_text_escaped(folder: Path, log: Path) -> None:
    """Under a pipe each line is a name and its values between tabs, whatever the log's text holds."""
    lines = [line.split("\t") for line in run("status", "--state-dir", folder).out.splitlines()]

    assert ["bridge", "not running"] in lines
    assert ["delivered_spans", "1234"] in lines
    assert ["lost_bytes", "gap", "10"] in lines
    assert ["file", str(log), "400", "1000", "600", "1700000000000"] in lines
    (session,) = (line for line in lines if line[0] == "session")
    assert session[1:4] == [SESSION, r"\x1b[2J\t[red]name[/red]\u202e\n", "python"]
    (error,) = (line for line in lines if line[0] == "last_error")
    assert error[2] == r"HTTP 503: \x1b[2J\t[red]name[/red]\u202e\n"


def test_terminal_shows_tables_with_log_text_escaped(folder: Path, log: Path) -> None:
    """On a terminal people see tables; a name is text there too, neither markup nor an escape sequence."""
    ran = run_on_terminal("status", "--state-dir", folder, columns=200)

    assert ran.status == 0
    assert "\x1b[2J" not in ran.out
    assert r"\x1b[2J\t[red]name[/red]\u202e\n" in ran.out
    assert f"{log}" in ran.out
    assert "1,234 spans" in ran.out
    assert "600 bytes" in ran.out
    assert "not running; start one with `otel-bridge tail`" in ran.out


def test_running_bridge_is_named_with_what_it_waits_for(folder: Path) -> None:
    """While a bridge holds the folder its process is shown, and what only a running one has: waiting, held files."""
    with StateStore.open(folder):
        shown = json.loads(run("status", "--json", "--state-dir", folder).out)
    after = json.loads(run("status", "--json", "--state-dir", folder).out)

    assert shown["running"] is True
    assert isinstance(shown["pid"], int)
    assert (shown["waiting_for"], shown["held_files"], shown["held_bytes"]) == ("HTTP 503: busy", 1, 55)
    assert (after["running"], after["pid"], after["waiting_for"], after["held_files"]) == (False, None, "", 0)


def test_state_that_cannot_be_read_is_one_line_and_exit_1(folder: Path) -> None:
    """What is wrong with a state goes to standard error, with the file and the way out."""
    (folder / DATABASE).write_text("no database\n" * 100)

    ran = run("status", "--state-dir", folder)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"otel-bridge: {folder / DATABASE} is damaged")
    assert ran.err.count("\n") == 1


def test_variable_names_the_folder(folder: Path) -> None:
    """OTEL_BRIDGE_STATE_DIR is heeded as by the bridge itself."""
    shown = json.loads(run("status", "--json", environ={"OTEL_BRIDGE_STATE_DIR": str(folder)}).out)

    assert shown["delivered_spans"] == 1234


def rotate(log: Path) -> Path:
    """The log gets another name, and a new one its own."""
    renamed = log.rename(log.with_name("server1.log"))
    log.write_bytes(b"new")
    return renamed


def grow_shorter(log: Path) -> Path:
    """The log is cut and written anew."""
    log.write_bytes(b"y" * 100)
    return log


def delete(log: Path) -> Path:
    """The log is gone."""
    log.unlink()
    return log


@pytest.mark.parametrize(
    ("change", "size_bytes", "lag_bytes", "is_gone"),
    [
        (lambda log: log, 1000, 600, False),
        (rotate, 1000, 600, False),
        (grow_shorter, 100, 100, False),
        (delete, 1000, 600, True),
    ],
    ids=["as it was", "renamed", "truncated", "deleted"],
)
def test_file_is_found_by_what_it_is(
    log: Path, change: Callable[[Path], Path], size_bytes: int, lag_bytes: int, is_gone: bool
) -> None:
    """A file that was renamed since is found by its inode; of one that is gone the largest size seen counts."""
    point = point_of(log, 400)
    path = change(log)

    (file,) = followed_files([point], Path(DATABASE))

    assert (file.path, file.size_bytes, file.lag_bytes, file.is_gone) == (str(path), size_bytes, lag_bytes, is_gone)


def test_file_that_was_read_to_its_end_for_good_is_left_out(log: Path) -> None:
    """Rotated files that are wholly delivered are no news; one that grew after all is."""
    assert followed_files([point_of(log, 1000, ended=True)], Path(DATABASE)) == []
    assert len(followed_files([point_of(log, 900, ended=True)], Path(DATABASE))) == 1


def test_what_was_in_a_file_before_it_was_truncated_is_not_there(log: Path) -> None:
    """The file that lies there is the newest generation's; an older one has been read, or is behind by its rest."""
    new = point_of(log, 1000) | {"order": 2}

    for ended, lags in ((True, [0]), (False, [400, 0])):
        old = point_of(log, 4600, ended=ended) | {"order": 1, "size_bytes": 5000}
        files = followed_files([old, new], Path(DATABASE))
        assert [file.lag_bytes for file in files] == lags
        assert [file.is_gone for file in files] == [True, False][-len(lags) :]


def test_checkpoint_that_is_none_names_the_database() -> None:
    """A value of another form is damage, with the file and the way out."""
    with pytest.raises(StateError, match=r"/s/state\.db is damaged .*; move it away to begin anew"):
        followed_files([{"chain": "c"}], Path("/s/state.db"))


def test_lag_in_seconds_is_that_of_the_file_which_is_furthest_behind() -> None:
    """Files that are read to their end do not count, nor those whose last entry is unknown; a clock ahead is 0."""
    files = (
        FollowedFile("/done", "c", 5, 5, 1_000, False),
        FollowedFile("/behind", "c", 4, 5, 8_000, False),
        FollowedFile("/unknown", "c", 0, 5, None, False),
        FollowedFile("/ahead", "c", 0, 5, 99_000, False),
    )
    status = Status("/s", True, 10_000, None, "", "", 0, 0, 0, Kept(), {}, {}, {}, 0, 0, files, (), ())

    assert status.lag_bytes == 11
    assert status.lag_s == 2.0
    assert status.age_s(99_000) == 0.0
    assert "lag\t11\t2" in tab_separated(status)


def test_dead_letters_are_counted_and_broken_lines_are_not(tmp_path: Path) -> None:
    """Letters and refused spans are counted, and beside them half a line that a kill left; no file has none."""
    path = tmp_path / DEAD_LETTERS
    assert kept_dead_letters(path) == Kept(0, 0)
    span = SpanEncoder().encode(Span(1, 2, 0, "n", SpanKind.SERVER, 1, 2, {}))
    letters = [DeadLetter((span,), 1, "HTTP 400", "no", 0.0), DeadLetter((span, span), 2, "partial success", "", 0.0)]
    DeadLetters(path).add(letters, RequestEncoder(Resource({}), Scope()))
    with path.open("ab") as file:
        file.write(b'{"refused": {"cou')

    assert kept_dead_letters(path) == Kept(2, 3, 1)


def test_dead_letters_that_are_no_file_are_named(tmp_path: Path) -> None:
    """A folder in the place of the file is an error with the next step."""
    (tmp_path / DEAD_LETTERS).mkdir()

    with pytest.raises(StateError, match=f"{tmp_path / DEAD_LETTERS} is no regular file; move it away"):
        kept_dead_letters(tmp_path / DEAD_LETTERS)


# runs of the wrapper


def left_run(state: Path, log: str) -> RunFolder:
    """A run whose server wrote this log, of which nothing is delivered."""
    folder = RunFolder.create(state, None, 1_700_000_000_000, Capture.ARGUMENTS)
    (folder.path / "server.log").write_text(log)
    return folder


def test_runs_are_listed_with_what_waits_and_who_delivers_it(tmp_path: Path) -> None:
    """One that is over is the next run's, one that lives delivers by itself; in all three forms."""
    left_run(tmp_path, "x" * 700).release()
    running = left_run(tmp_path, "")

    shown = json.loads(run("status", "--json", "--state-dir", tmp_path).out)
    lines = [line.split("\t") for line in run("status", "--state-dir", tmp_path).out.splitlines()]
    tables = run_on_terminal("status", "--state-dir", tmp_path, columns=400)

    found = {(one["is_running"], one["behind_bytes"]): one for one in shown["runs"]}
    assert found.keys() == {(False, 700), (True, 0)}
    over = found[False, 700]
    assert over["log"] == f"{over['folder']}/server.log"
    assert ["run", over["folder"], "waiting", "1700000000000", over["log"], "700", "0"] in lines
    assert ["run", str(running.path), "running", "1700000000000", f"{running.path}/server.log", "0", "0"] in lines
    assert f"700 bytes of {over['log']} and 0 open sessions" in tables.out
    assert "the next `otel-bridge run`" in tables.out
    running.release()


def test_a_run_that_goes_on_is_a_bridge_that_runs(tmp_path: Path) -> None:
    """Beside it nothing says that no bridge runs, nor shows totals that are not its own; after it all is as before."""
    running = left_run(tmp_path, "")

    shown = json.loads(run("status", "--json", "--state-dir", tmp_path).out)
    lines = run("status", "--state-dir", tmp_path).out.splitlines()
    tables = run_on_terminal("status", "--state-dir", tmp_path, columns=400).out
    with StateStore.open(tmp_path):
        both = run_on_terminal("status", "--state-dir", tmp_path, columns=400).out
    running.release()
    over = run_on_terminal("status", "--state-dir", tmp_path, columns=400).out

    assert (shown["running"], shown["pid"]) == (True, None)
    assert "bridge\trunning\t" in lines
    assert "running: 1 `otel-bridge run`, shown below; no `otel-bridge tail`" in tables
    assert "delivered  " not in tables
    assert f"running, process {os.getpid()}; and 1 `otel-bridge run`, shown below" in both
    assert "not running; start one with `otel-bridge tail`" in over


def test_a_run_that_was_delivered_in_part_is_behind_by_the_rest(tmp_path: Path) -> None:
    """Its own state says how far it came, and which sessions are open."""
    folder = left_run(tmp_path, "x" * 1000)
    log = folder.path / "server.log"
    with StateStore.open(folder.path) as store:
        store.commit(
            Commit({"server.log-1#1": point_of(log, 400)}, {"server.log-1": changes({SESSION: open_session("s", 1)})})
        )
    folder.release()

    (shown,) = known_runs(tmp_path)

    assert (shown.behind_bytes, shown.open_sessions, shown.is_running) == (600, 1, False)
    assert shown.waiting == f"600 bytes of {log} and 1 open session"


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The others are still shown."""
    folder = left_run(tmp_path, "")
    (folder.path / DESCRIPTION).write_text("{")
    folder.release()
    left_run(tmp_path, "xyz").release()

    torn, other = known_runs(tmp_path)

    assert f"{folder.path / DESCRIPTION} cannot be read" in torn.problem
    assert other.behind_bytes == 3


def test_looking_at_a_run_keeps_nobody_from_taking_it_up(tmp_path: Path) -> None:
    """Who looks holds a shared lock for that moment."""
    folder = left_run(tmp_path, "")
    folder.release()
    with ThreadPoolExecutor(1) as pool, (folder.path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        taking = pool.submit(lambda: list(dead_runs(tmp_path)))
        assert [is_held for _, is_held in run_folders(tmp_path)] == [False]
        fcntl.flock(looking, fcntl.LOCK_UN)
        (taken,) = taking.result()

    assert [is_held for _, is_held in run_folders(tmp_path)] == [True]
    taken.release()
