"""Logs that cannot be read, or that are deleted under the bridge: others go on, and what was written is delivered."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from otel_bridge.testing import Receiver
from tests.faults.spans import expected, wait_for_all
from tests.faults.unprivileged import unprivileged
from tests.faults.writing import duration_ms, write_sessions
from tests.real.bridge import TailProcess, run
from tests.real.ports import reserve_port
from tests.waiting import wait_until


@dataclass(slots=True)
class Logs:
    """Two logs in folders of their own, one of which fares badly, and a copy of all that was ever in each."""

    folder: Path
    bad: Path = field(init=False)
    good: Path = field(init=False)
    wholes: dict[Path, Path] = field(init=False)
    _next_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    """In log time: of two equal entries of one millisecond in two logs nobody could tell whose a span is."""

    def __post_init__(self) -> None:
        self.bad, self.good = self.folder / "bad" / "server.log", self.folder / "good" / "server.log"
        self.wholes = {log: self.folder / f"{log.parent.name}-whole.log" for log in (self.bad, self.good)}

    def write(self, log: Path, sessions: int = 1) -> None:
        """Appends sessions to a log."""
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as file:
            file.write(self.lines(log, sessions))

    def lines(self, log: Path, sessions: int = 1) -> bytes:
        """More sessions, as bytes that are in the copy already; the log itself is the caller's to write."""
        whole = self.wholes[log]
        before = whole.stat().st_size if whole.exists() else 0
        write_sessions(whole, sessions, self._next_ms)
        self._next_ms += sessions * (duration_ms("happy") + 1)
        return whole.read_bytes()[before:]

    def write_both(self) -> None:
        """Appends a session to each."""
        for log in (self.bad, self.good):
            self.write(log)

    def wait_for(self, receiver: Receiver, *logs: Path) -> None:
        """Waits until the backend has all that was ever in these logs, and finds nothing else there."""
        wait_for_all(receiver, {key: span for log in logs for key, span in expected(self.wholes[log]).items()})


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    """The logs, whose modes are mended at the end so that the folder can be deleted."""
    logs = Logs(tmp_path / "logs")
    logs.folder.mkdir()
    yield logs
    if logs.bad.parent.exists():
        logs.bad.parent.chmod(0o700)


def tail(folder: Path, logs: Logs, endpoint: str) -> TailProcess:
    """A bridge that follows both from their beginnings."""
    words = (logs.bad, logs.good, "--endpoint", endpoint, "--from", "beginning")
    return TailProcess(folder / "bridge", *words, wrapped=unprivileged())


def settled(bridge: TailProcess) -> None:
    """Waits until the state says that everything is delivered."""
    wait_until(lambda: bridge.status.files and bridge.status.lag_bytes == 0, "all is delivered")


def check_no_loss(bridge: TailProcess) -> None:
    """Stops the bridge; AssertionError if it says or counts a loss, or if it ended otherwise than it should."""
    assert bridge.stop() == 0
    shown = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)
    assert (shown["lost_bytes"], shown["lost_spans"], shown["malformed_lines"]) == ({}, 0, {})
    assert "warning:" not in bridge.output
    assert "Traceback" not in bridge.output


# what must not be read


def deny_file(log: Path) -> Callable[[], None]:
    """Takes the permission on the log away; gives what gives it back."""
    log.chmod(0)
    return lambda: log.chmod(0o600)


def deny_listing(log: Path) -> Callable[[], None]:
    """The names in the log's folder cannot be listed, though they can be opened."""
    log.parent.chmod(0o300)
    return lambda: log.parent.chmod(0o700)


def deny_names(log: Path) -> Callable[[], None]:
    """The names in the log's folder can be listed, and not opened."""
    log.parent.chmod(0o600)
    return lambda: log.parent.chmod(0o700)


def deny_folder(log: Path) -> Callable[[], None]:
    """Nothing at all can be done in the log's folder."""
    log.parent.chmod(0)
    return lambda: log.parent.chmod(0o700)


DENIALS = pytest.mark.parametrize("deny", [deny_file, deny_listing, deny_names, deny_folder])


@DENIALS
def test_what_is_open_already_is_read_on(
    deny: Callable[[Path], Callable[[], None]], logs: Logs, tmp_path: Path
) -> None:
    """A permission that is lost while the bridge runs stops neither this log nor the other."""
    logs.write_both()
    with (
        Receiver() as receiver,
        tail(tmp_path, logs, receiver.endpoint) as bridge,
        ExitStack() as writers,
    ):
        logs.wait_for(receiver, logs.bad, logs.good)
        file = writers.enter_context(logs.bad.open("ab", buffering=0))
        allow = deny(logs.bad)
        file.write(logs.lines(logs.bad))
        logs.write(logs.good)
        logs.wait_for(receiver, logs.bad, logs.good)
        allow()
        logs.write_both()
        logs.wait_for(receiver, logs.bad, logs.good)
        settled(bridge)
        check_no_loss(bridge)


@pytest.mark.parametrize("end", ["kill", "stop"])
@DENIALS
def test_what_must_not_be_read_at_a_start_is_waited_for(
    deny: Callable[[Path], Callable[[], None]], end: str, logs: Logs, tmp_path: Path
) -> None:
    """It is named, is no loss, and holds up nothing; once it may be read, it is read from where the bridge was."""
    logs.write_both()
    with Receiver() as receiver, tail(tmp_path, logs, receiver.endpoint) as bridge:
        logs.wait_for(receiver, logs.bad, logs.good)
        settled(bridge)
        first = len(receiver.arrived)
        getattr(bridge, end)()
        logs.write_both()
        allow = deny(logs.bad)
        bridge.start()
        name = re.escape(str(logs.bad if deny in (deny_file, deny_names) else logs.bad.parent))
        pattern = rf"cannot read {name}\S*: permission denied; trying again"
        wait_until(lambda: re.search(pattern, bridge.output), "it is named")
        wait_until(lambda: len(receiver.spans) >= first + 39, "the other log goes on")
        assert json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)["lost_bytes"] == {}
        allow()
        wait_until(lambda: re.search(rf"can read {name}\S* again", bridge.output), "it says that this is over")
        logs.wait_for(receiver, logs.bad, logs.good)
        logs.write_both()
        logs.wait_for(receiver, logs.bad, logs.good)
        settled(bridge)
        assert len(receiver.arrived) == len(receiver.spans)
        check_no_loss(bridge)


def test_a_new_part_that_must_not_be_read_is_waited_for(logs: Logs, tmp_path: Path) -> None:
    """Rotation gives a file that only root can read: it is named, the other log goes on, and later it is read."""
    logs.write_both()
    with Receiver() as receiver, tail(tmp_path, logs, receiver.endpoint) as bridge:
        logs.wait_for(receiver, logs.bad, logs.good)
        new = logs.bad.with_name("next")
        new.write_bytes(logs.lines(logs.bad))
        new.chmod(0)
        logs.bad.rename(logs.bad.with_name("server1.log"))
        new.rename(logs.bad)
        wait_until(lambda: f"cannot read {logs.bad}: permission denied; trying again" in bridge.output, "it is named")
        first = len(receiver.spans)
        logs.write(logs.good)
        wait_until(lambda: len(receiver.spans) == first + 39, "the other log goes on")
        logs.bad.chmod(0o600)
        logs.wait_for(receiver, logs.bad, logs.good)
        assert f"can read {logs.bad} again" in bridge.output
        settled(bridge)
        check_no_loss(bridge)


# what is deleted


@pytest.mark.parametrize("is_away", [False, True], ids=["read already", "the backend is away"])
def test_a_folder_that_is_deleted_and_made_again_is_followed_on(is_away: bool, logs: Logs, tmp_path: Path) -> None:
    """What was in the deleted log is delivered, and what is in the new one from its beginning."""
    port = reserve_port()
    logs.write_both()
    receiver = Receiver(port=port)
    with tail(tmp_path, logs, f"http://127.0.0.1:{port}") as bridge, ExitStack() as backend:
        if is_away:
            wait_until(lambda: bridge.status.waiting_for, "the outage is noticed")
            assert len(bridge.status.files) == 2
        else:
            backend.enter_context(receiver)
            logs.wait_for(receiver, logs.bad, logs.good)
        shutil.rmtree(logs.bad.parent)
        wait_until(lambda: f"{logs.bad} was deleted" in bridge.output, "it is noticed")
        logs.write(logs.good)
        logs.write_both()  # makes the folder again
        if is_away:
            backend.enter_context(receiver)
        logs.wait_for(receiver, logs.bad, logs.good)
        shutil.rmtree(logs.bad.parent)
        logs.write_both()  # at once: the bridge sees no moment without a folder
        logs.wait_for(receiver, logs.bad, logs.good)
        settled(bridge)
        check_no_loss(bridge)


@pytest.mark.parametrize("what", ["the log", "its folder"])
def test_a_writer_that_goes_on_in_a_deleted_file_is_read_on(what: str, logs: Logs, tmp_path: Path) -> None:
    """For as long as it has the file; and a new file of that name is another."""
    logs.write_both()
    with (
        Receiver() as receiver,
        tail(tmp_path, logs, receiver.endpoint) as bridge,
        logs.bad.open("ab", buffering=0) as file,
    ):
        logs.wait_for(receiver, logs.bad, logs.good)
        if what == "the log":
            logs.bad.unlink()
        else:
            shutil.rmtree(logs.bad.parent)
        wait_until(lambda: f"{logs.bad} was deleted" in bridge.output, "it is noticed")
        for _ in range(3):
            file.write(logs.lines(logs.bad))
            logs.wait_for(receiver, logs.bad, logs.good)
        logs.write_both()  # a server that was started anew, while the old one still writes
        file.write(logs.lines(logs.bad))
        logs.wait_for(receiver, logs.bad, logs.good)
        settled(bridge)
        check_no_loss(bridge)


def test_what_only_a_killed_bridge_held_open_is_named(logs: Logs, tmp_path: Path) -> None:
    """A log that was deleted while the backend was away, and then a kill: file and offset are said, bytes counted."""
    port = reserve_port()
    logs.write_both()
    with tail(tmp_path, logs, f"http://127.0.0.1:{port}") as bridge:
        wait_until(lambda: bridge.status.waiting_for and len(bridge.status.files) == 2, "both are known, and wait")
        lost_bytes = logs.bad.stat().st_size
        logs.bad.unlink()
        wait_until(lambda: f"{logs.bad} was deleted" in bridge.output, "it is noticed")
        bridge.kill()
        bridge.start()
        wait_until(lambda: bridge.status.lost_bytes, "it is counted")
        (said,) = (line for line in bridge.output.splitlines() if "warning:" in line)
        assert f"{logs.bad} is gone: what followed byte 0 (at least {lost_bytes} bytes)" in said
        assert bridge.status.lost_bytes == {"gap": lost_bytes}
        logs.wholes[logs.bad].write_bytes(b"")  # all of it is lost
        logs.write_both()
        with Receiver(port=port) as receiver:
            logs.wait_for(receiver, logs.bad, logs.good)
            settled(bridge)
            assert bridge.stop() == 0
        shown = run("status", "--state-dir", bridge.state_dir).stdout.splitlines()
        assert f"lost_bytes\tgap\t{lost_bytes}" in shown
