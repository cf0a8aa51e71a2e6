"""What is lost all the same, during an outage: named with file and offset, and counted in all that `status` shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

import pytest

from otel_bridge.export.dead_letters import DEFAULT_MAX_BYTES
from otel_bridge.sources import Caps
from otel_bridge.state.place import DEAD_LETTERS
from otel_bridge.testing import CannedReply, Receiver, Request
from tests.faults.spans import by_id, check_same, expected, wait_for_all
from tests.faults.writing import duration_ms, write_sessions
from tests.real.bridge import TailProcess, run
from tests.real.ports import reserve_port
from tests.waiting import wait_until

BEGAN_MS = 1_790_000_000_000
MANY = 350
"""Sessions of 19 kB: more than four reads of a megabyte, after which nothing is read while the backend is away."""
HELD_FILES = Caps().held_files


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be."""
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "server.log"


@pytest.fixture
def bridge(log: Path, tmp_path: Path) -> Iterator[TailProcess]:
    """A bridge that follows the log, to a backend that is away."""
    endpoint = f"http://127.0.0.1:{reserve_port()}"
    with TailProcess(tmp_path / "bridge", log, "--endpoint", endpoint, "--from", "beginning") as bridge:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        yield bridge


def backend(bridge: TailProcess) -> Receiver:
    """The backend, once it is back."""
    return Receiver(port=int(bridge.command[bridge.command.index("--endpoint") + 1].rsplit(":", 1)[1]))


def write(log: Path, number: int) -> None:
    """Appends the session of that number."""
    write_sessions(log, 1, BEGAN_MS + number * (duration_ms("happy") + 1))


def appear(log: Path, parts: list[bytes]) -> None:
    """A log with these sessions is there all at once."""
    new = log.with_name("new")
    new.write_bytes(b"".join(parts))
    new.rename(log)


def sessions(folder: Path, count: int) -> list[bytes]:
    """The bytes of each of these sessions."""
    parts = []
    for number in range(count):
        path = folder / f"session-{number}"
        write(path, number)
        parts.append(path.read_bytes())
    return parts


def is_open(bridge: TailProcess, log: Path) -> bool:
    """Whether the bridge has opened the file that lies there now."""
    assert bridge.process is not None
    wanted, inodes = log.stat().st_ino, set()
    for descriptor in Path(f"/proc/{bridge.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            inodes.add(descriptor.stat().st_ino)
    return wanted in inodes


def shown(bridge: TailProcess) -> tuple[dict[str, int], list[str]]:
    """The lost bytes by `status --json`, and those by `status`."""
    as_json = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)
    lines = run("status", "--state-dir", bridge.state_dir).stdout.splitlines()
    return as_json["lost_bytes"], [line for line in lines if line.startswith("lost_bytes\t")]


def test_what_was_truncated_unread_is_counted_at_once(bridge: TailProcess, log: Path, tmp_path: Path) -> None:
    """While the backend is still away; a kill neither forgets nor doubles it."""
    appear(log, sessions(tmp_path, MANY))
    wait_until(lambda: bridge.status.waiting_for and bridge.status.files, "it was read in part")
    data = log.read_bytes()
    log.write_bytes(b"")
    pattern = (
        rf"warning: {re.escape(str(log))} was truncated: (\d+) bytes from byte (\d+) on were not read and are lost"
    )
    found = wait_until(lambda: re.search(pattern, bridge.output), "it is said")
    lost_bytes, offset_bytes = map(int, found.groups())
    assert lost_bytes > 0
    assert lost_bytes + offset_bytes == len(data)
    wait_until(lambda: bridge.status.lost_bytes, "it is counted")
    assert shown(bridge) == ({"truncated": lost_bytes}, [f"lost_bytes\ttruncated\t{lost_bytes}"])

    bridge.kill()
    bridge.start()
    wait_until(lambda: "gap" in bridge.status.lost_bytes, "what only the killed one had read is counted too")
    assert f"{log} is gone: what followed byte 0 (at least {offset_bytes} bytes) was not read" in bridge.output
    assert shown(bridge)[0] == {"gap": offset_bytes, "truncated": lost_bytes}
    write(log, 99)
    with backend(bridge) as receiver:
        wait_for_all(receiver, expected(log))
        assert bridge.stop() == 0
    assert shown(bridge)[0] == {"gap": offset_bytes, "truncated": lost_bytes}


def test_what_was_read_before_a_truncation_is_delivered(bridge: TailProcess, log: Path, tmp_path: Path) -> None:
    """Without a kill only the unread rest is lost, whatever the backend missed."""
    parts = sessions(tmp_path, MANY)
    appear(log, parts)
    wait_until(lambda: bridge.status.waiting_for and bridge.status.files, "it was read in part")
    log.write_bytes(b"")
    lost_bytes = wait_until(lambda: bridge.status.lost_bytes.get("truncated"), "it is counted")
    write(log, MANY)
    left_bytes = sum(map(len, parts)) - lost_bytes
    ends = [*accumulate(map(len, parts))]
    whole = sum(1 for end in ends if end <= left_bytes)
    assert 0 < whole < MANY
    (tmp_path / "read.log").write_bytes(b"".join(parts[:whole]))
    wanted = expected(tmp_path / "read.log") | expected(log)
    cut = expected(tmp_path / f"session-{whole}")
    with backend(bridge) as receiver:
        wait_until(lambda: bridge.status.lag_bytes == 0 and bridge.status.waiting_for == "", "all is delivered")
        check_same({key: span for key, span in by_id(receiver.spans).items() if key not in cut}, wanted)
        assert bridge.stop() == 0
    assert shown(bridge)[0] == {"truncated": lost_bytes}


def test_what_exceeds_the_held_files_is_counted(bridge: TailProcess, log: Path, tmp_path: Path) -> None:
    """Of 64 files without a name the oldest unread ones are given up: the sum is counted, and said once a minute."""
    appear(log, sessions(tmp_path, MANY))
    wait_until(lambda: bridge.status.waiting_for and bridge.status.files, "it was read in part")
    for number in range(HELD_FILES + 6):
        log.rename(log.with_name("gone"))
        write(log, MANY + number)
        wait_until(lambda: is_open(bridge, log), "the new one is open")
        log.with_name("gone").unlink()
    lost_bytes = wait_until(lambda: bridge.status.lost_bytes.get("held_cap"), "it is counted")
    assert lost_bytes > 0
    assert re.search(rf"warning: {re.escape(str(log))} was rotated away and is given up at byte \d+:", bridge.output)
    with backend(bridge) as receiver:
        wait_until(lambda: bridge.status.lag_bytes == 0 and len(receiver.spans) > 60 * 39, "the rest is delivered", 60)
        assert bridge.stop() == 0
    total = bridge.status.lost_bytes["held_cap"]
    assert shown(bridge) == ({"held_cap": total}, [f"lost_bytes\theld_cap\t{total}"])
    assert "more like this)" in bridge.output


def test_refused_spans_for_which_there_is_no_room_are_counted(log: Path, tmp_path: Path) -> None:
    """A full file of dead letters costs the refused span, which is said with the bound; the others are delivered."""
    write(log, 0)
    wanted = expected(log)
    poison = sorted(wanted)[5]

    def reply(request: Request) -> CannedReply:
        return CannedReply(400 if poison in by_id(request.spans) else 200)

    with Receiver(reply) as receiver:
        words = (log, "--endpoint", receiver.endpoint, "--from", "beginning")
        bridge = TailProcess(tmp_path / "bridge", *words)
        bridge.state_dir.mkdir(mode=0o700)
        letters = bridge.state_dir / DEAD_LETTERS
        letters.touch(0o600)
        with letters.open("r+b") as file:
            file.truncate(DEFAULT_MAX_BYTES - 10)
        with bridge:
            wait_until(lambda: bridge.status.lost_spans, "it is counted")
            assert bridge.stop() == 0
        check_same(by_id(receiver.spans), {key: span for key, span in wanted.items() if key != poison})
    said = f"HTTP 400: no reason given; 1 not kept, the dead letters are full ({DEFAULT_MAX_BYTES:,} bytes)"
    assert said in bridge.output
    as_json = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)
    assert (as_json["refused_spans"], as_json["lost_spans"], as_json["delivered_spans"]) == (1, 1, len(wanted) - 1)
    lines = run("status", "--state-dir", bridge.state_dir).stdout.splitlines()
    assert {"refused_spans\t1", "lost_spans\t1"} <= set(lines)


def test_a_log_that_is_asked_for_no_more_is_still_shown(log: Path, tmp_path: Path) -> None:
    """What was delivered of it stays in `status` when the bridge is started with another path."""
    other = tmp_path / "logs" / "other.log"
    write(log, 0)
    write(other, 1)
    with Receiver() as receiver:
        for path in (log, other):
            with TailProcess(
                tmp_path / "bridge", path, "--endpoint", receiver.endpoint, "--from", "beginning"
            ) as bridge:
                wait_for_all(receiver, expected(log) | (expected(other) if path == other else {}))
                wait_until(lambda: bridge.status.files and bridge.status.lag_bytes == 0, "all is delivered")
                assert bridge.stop() == 0
    files = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)["files"]
    assert [(file["path"], file["offset_bytes"]) for file in files] == [
        (str(path), path.stat().st_size) for path in (other, log)
    ]
