"""`otel-bridge doctor`: what it finds of logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from otel_bridge.cli.doctor_logs import check_logs
from otel_bridge.cli.findings import Finding, Level
from otel_bridge.cli.progress import FollowedFile
from tests.cli.found import CALL, ERROR, NOISE, only, write

NOW_MS = 1_700_000_100_000


def logs(*patterns: str | Path, followed: Sequence[FollowedFile] = (), named: bool = True) -> list[Finding]:
    """The findings on logs in these places."""
    return check_logs([str(pattern) for pattern in patterns], followed, NOW_MS, named=named)


def test_structured_log_is_fine(tmp_path: Path) -> None:
    """A log with an entry in it is ok, with its size and the age of the last entry."""
    path = write(tmp_path / "server.log", NOISE, CALL)

    finding = only(logs(path))

    assert (finding.level, finding.subject) == (Level.OK, str(path))
    assert finding.text == (
        f"structured, 1 file, {path.stat().st_size} bytes, last entry 1 min 40 s ago; not followed yet"
    )


def test_files_of_one_chain_are_one_log(tmp_path: Path) -> None:
    """A log and its rotated parts are one finding, with the chain that a bridge follows and what is behind in it."""
    older = write(tmp_path / "server1.log", CALL * 2)
    newer = write(tmp_path / "server.log", CALL)
    followed = [
        FollowedFile(str(older), "server.log-ab", 10, 100, None, False),
        FollowedFile(str(newer), "server.log-ab", 0, 20, None, False),
    ]

    finding = only(logs(tmp_path, followed=followed))

    assert (finding.level, finding.subject) == (Level.OK, str(newer))
    assert ", 2 files, " in finding.text
    assert finding.text.endswith("; followed as server.log-ab, 110 bytes behind")


def test_log_with_errors_alone_was_written_at_the_wrong_level(tmp_path: Path) -> None:
    """At warn and error no sessions are logged: the finding names the level to set."""
    finding = only(logs(write(tmp_path / "server.log", ERROR * 3)))

    assert finding.level is Level.WARN
    assert "errors alone" in finding.text
    assert "--log-level info" in finding.next_step


@pytest.mark.parametrize("by_folder", [True, False])
def test_log_without_entries_is_no_server_log(tmp_path: Path, by_folder: bool) -> None:
    """Alone, or given by its name, it is a failure that says what to give instead."""
    path = write(tmp_path / "server.log", NOISE * 100)

    finding = only(logs(tmp_path if by_folder else path))

    assert finding.level is Level.FAIL
    assert finding.text == "no structured entry at its beginning or end"
    assert "--log-level info" in finding.next_step


def test_other_files_with_a_logs_name_are_no_failure(tmp_path: Path) -> None:
    """Proxies write files of the same name pattern into the same folder: beside a server's log they are ok."""
    write(tmp_path / "debug-mcp-server-11.log", CALL)
    write(tmp_path / "debug-mcp-server-97.log", NOISE)

    levels = {Path(one.subject).name: one.level for one in logs(tmp_path)}

    assert levels == {"debug-mcp-server-11.log": Level.OK, "debug-mcp-server-97.log": Level.OK}


def test_file_given_by_its_name_must_be_a_log_even_beside_others(tmp_path: Path) -> None:
    """A person who names a file means it."""
    good, bad = write(tmp_path / "a.log", CALL), write(tmp_path / "b.log", NOISE)

    assert {one.subject: one.level for one in logs(good, bad)} == {str(good): Level.OK, str(bad): Level.FAIL}


def test_empty_log_waits_for_its_server(tmp_path: Path) -> None:
    """A server with an unknown level name leaves the file empty: that is a hint, not a failure."""
    finding = only(logs(write(tmp_path / "server.log")))

    assert (finding.level, finding.text) == (Level.WARN, "empty so far")
    assert "--log-level" in finding.next_step


def test_entry_at_the_end_of_a_large_log_is_found(tmp_path: Path) -> None:
    """Of a large file the beginning and the end are looked at, and a line cut in the middle is no flaw."""
    path = tmp_path / "server.log"
    call = CALL.replace("tool:call", "tool:response")
    # So many bytes more that the last megabyte begins behind the first byte of a line.
    rest = "x" * ((1024 * 1024 + 1) % len(call) - 1) + "\n"
    with path.open("w") as file:
        file.write(NOISE * (6_000_000 // len(NOISE)))
        file.write(call * 30_000 + rest)
    assert path.read_bytes()[-1024 * 1024 :].startswith(call[1:].encode())

    finding = only(logs(path))

    assert finding.level is Level.OK


def test_lines_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    """Structured lines with a flaw are named by it, with their number."""
    broken = CALL.replace("1700000000000", "null")

    found = logs(write(tmp_path / "server.log", CALL, broken, broken))

    assert [one.level for one in found] == [Level.OK, Level.WARN]
    assert found[1].text == "some structured lines cannot be read: no usable timestamp 2"


def test_missing_path_is_a_failure_for_each(tmp_path: Path) -> None:
    """A file, a folder or a glob that gives nothing is named, also beside one that gives something."""
    write(tmp_path / "server.log", CALL)
    (tmp_path / "empty").mkdir()
    patterns = [tmp_path / "nope.log", tmp_path / "empty", tmp_path / "*.txt", tmp_path / "gone" / "server.log"]

    found = logs(*patterns, tmp_path / "server.log")

    assert [one.level for one in found] == [Level.FAIL] * 4 + [Level.OK]
    assert [one.subject for one in found[:3]] == [str(pattern) for pattern in patterns[:3]]
    assert found[3].subject == str(tmp_path / "gone")
    assert all(one.next_step for one in found[:4])


def test_no_log_in_the_default_places_is_a_hint(tmp_path: Path) -> None:
    """A server that was never started is no failure; the places that were looked at are named."""
    finding = only(logs(tmp_path / "one", tmp_path / "two", named=False))

    assert finding.level is Level.WARN
    assert finding.subject == f"{tmp_path}/one, {tmp_path}/two"
    assert finding.next_step.startswith("start the server, or give the path of its log; looked in ")
    assert "/debug-mcp-server, " in finding.next_step


def test_packed_log_is_pointed_to_replay(tmp_path: Path) -> None:
    """A `.gz` does not grow: the command that reads it is named."""
    path = write(tmp_path / "server.log.gz", "x")

    assert "otel-bridge replay" in only(logs(path)).next_step


def test_fifo_is_not_opened(tmp_path: Path) -> None:
    """What is no regular file is named and not waited for."""
    os.mkfifo(tmp_path / "server.log")

    finding = only(logs(tmp_path))

    assert (finding.level, finding.text) == (Level.WARN, "not a regular file, so it is not read")


def test_unreadable_log_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without permission the finding names the reason and the way out."""
    path = write(tmp_path / "server.log", CALL)

    def refused(self: object, path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("otel_bridge.sources.files.LocalFiles.open", refused)
    finding = only(logs(path))

    assert (finding.level, finding.text) == (Level.FAIL, "cannot be read: permission denied")
    assert finding.next_step == "run this as the server's user, or change its mode"


def test_what_tail_leaves_to_other_users_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the default places: said, neither read nor taken for a failure. Named, it is looked at like any other."""
    path = write(tmp_path / "server.log", CALL)
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)

    left, looked_at = only(logs(path, named=False)), only(logs(path))

    assert left.level is Level.OK
    assert left.text == "another user's log: `tail` follows it only when it is named"
    assert looked_at.text.startswith("structured, ")
