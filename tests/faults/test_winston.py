"""The real winston, rotating files of 64 kB at 5,000 lines a second: three files hold a tenth of a second of it."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from otel_bridge.testing import Receiver
from tests.faults.spans import expected, wait_for_witnessed
from tests.faults.witness import Witness
from tests.real.bridge import TailProcess
from tests.real.winston import Winston
from tests.waiting import wait_until

pytestmark = pytest.mark.real("winston")

LINES_PER_SECOND = 5_000
IDLE_MS = 5_000
"""On both sides; a session that was not closed is over after it, and then the spans are compared."""
OPTIONS = MappingOptions(idle_timeout_ms=IDLE_MS)
WRITTEN_NEXT_MS = 5_000
"""Longer than a bridge is dead here; in a file that is empty at that moment a line stands soon after."""
SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]

HOLE = re.compile(
    r"warning: (?P<path>\S+) (?:is|and \d+ newer files? of its log are) gone: what followed byte (?P<byte>\d+) "
    r"\(at least (?P<lost>\d+) bytes\) was not read and is lost; .*; "
    r"entries are missing between (?P<before>\S+) and (?P<after>\S+)"
)


def tail(folder: Path, log: Path, receiver: Receiver) -> TailProcess:
    """A bridge that follows the log."""
    idle = f"{IDLE_MS}ms"
    return TailProcess(
        folder / "bridge", log, "--endpoint", receiver.endpoint, "--from", "beginning", "--idle-timeout", idle
    )


def winston(log: Path, seconds: int, max_bytes: int = 64_000) -> Winston:
    """A winston that logs for so long."""
    return Winston(log, max_bytes=max_bytes, count=seconds * LINES_PER_SECOND, entries_per_second=LINES_PER_SECOND)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where it logs."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder / "server.log"


def wait_s(seconds: float) -> None:
    """Waits for a moment of the test's own."""
    until_s = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until_s, "the moment has come")


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=SLOW)])
def test_all_that_winston_wrote_is_received(seconds: int, log: Path, tmp_path: Path) -> None:
    """Of files that have a name for a tenth of a second, all lines."""
    with Receiver() as receiver, tail(tmp_path, log, receiver) as bridge, Witness(log.parent) as witness:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        with winston(log, seconds) as writer:
            writer.wait()
            whole = witness.write_whole(tmp_path / "whole.log")
        assert witness.files > seconds * 10
        wait_for_witnessed(receiver, expected(whole, options=OPTIONS))
        assert bridge.stop() == 0
        assert bridge.status.lost_bytes == {}
        assert "warning:" not in bridge.output


@pytest.mark.parametrize(
    ("seconds", "kills", "max_bytes"), [(8, 4, 4_000_000), pytest.param(60, 40, 12_000_000, marks=SLOW)]
)
def test_kills_that_are_shorter_than_the_rotation_cost_nothing(
    seconds: int, kills: int, max_bytes: int, log: Path, tmp_path: Path
) -> None:
    """Files that last for seconds at the same pace: what rotated while the bridge was down is found again.

    They must outlast what a bridge that is killed every other second needs to catch up, on a machine that is busy.
    """
    moments = random.Random(kills)
    with (
        Receiver() as receiver,
        tail(tmp_path, log, receiver) as bridge,
        Witness(log.parent) as witness,
        winston(log, seconds, max_bytes=max_bytes) as writer,
    ):
        for _ in range(kills):
            wait_s(moments.uniform(0, 2 * seconds / kills - 0.5))
            bridge.kill()
            bridge.start()
        writer.wait()
        whole = witness.write_whole(tmp_path / "whole.log")
        wait_for_witnessed(receiver, expected(whole, options=OPTIONS))
        assert bridge.stop() == 0
        assert bridge.status.lost_bytes == {}
        assert "warning:" not in bridge.output


@pytest.mark.parametrize(("seconds", "kills"), [(8, 2), pytest.param(60, 20, marks=SLOW)])
def test_what_was_rotated_out_of_existence_is_named(seconds: int, kills: int, log: Path, tmp_path: Path) -> None:
    """While the bridge was dead for longer than all files together last: the file, the offset, and the times around.

    Everything that was written at other times is received.
    """
    with Receiver() as receiver, tail(tmp_path, log, receiver) as bridge, Witness(log.parent) as witness:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        with winston(log, seconds) as writer:
            for number in range(kills):
                before = len(receiver.arrived)
                wait_until(lambda before=before: len(receiver.arrived) > before, "it delivers")  # type: ignore[misc]
                wait_s(seconds / kills / 3)
                bridge.kill()
                files = witness.files
                wait_until(lambda files=files: witness.files > files + 4, "all files were replaced")  # type: ignore[misc]
                bridge.start()
                wait_until(lambda number=number: len(holes_in(bridge.output)) > number, "it says so")  # type: ignore[misc]
            writer.wait()
        whole = witness.write_whole(tmp_path / "whole.log")
        wait_until(lambda: bridge.status.lag_bytes == 0 and not bridge.status.sessions, "all is delivered", 60)
        assert bridge.stop() == 0
        holes = holes_in(bridge.output)
        assert len(holes) == kills
        assert bridge.status.lost_bytes.get("gap", 0) == sum(hole.lost_bytes for hole in holes)
        missing = calls_of(expected(whole, options=OPTIONS).values()) - calls_of(receiver.spans)
        assert missing
        written_ms = times_of_calls(whole)
        unnamed = [call for call in missing if not any(written_ms[call] in hole for hole in holes)]
        assert [(call, written_ms[call]) for call in unnamed] == []


@dataclass(frozen=True, slots=True)
class Hole:
    """What a bridge said of what it missed: between two times of the log (Unix ms), and how many bytes at least."""

    before_ms: int
    after_ms: int
    lost_bytes: int

    def __contains__(self, time_ms: int) -> bool:
        return self.before_ms <= time_ms <= self.after_ms


def holes_in(output: str) -> list[Hole]:
    """The holes that a bridge named. One before "what is written next" ends soon: the new file was still empty."""
    return [_hole(found["before"], found["after"], int(found["lost"])) for found in HOLE.finditer(output)]


def _hole(before: str, after: str, lost_bytes: int) -> Hole:
    before_ms = 0 if before == "the" else ms(before)
    return Hole(before_ms, before_ms + WRITTEN_NEXT_MS if after == "what" else ms(after), lost_bytes)


def ms(text: str) -> int:
    """A time as Unix ms."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def calls_of(spans: Iterable[Span]) -> set[str]:
    """The calls, by the number that winston's process gave them."""
    arguments = (str(span.attributes.get("gen_ai.tool.call.arguments", "")) for span in spans)
    return {found[1] for found in (re.search(r"total \+ (\d+)", text) for text in arguments) if found}


def times_of_calls(whole: Path) -> dict[str, int]:
    """When each call was logged, Unix ms."""
    found = re.findall(rb'"total \+ (\d+)".*?"timestamp":"([^"]+)"', whole.read_bytes())
    return {number.decode(): ms(when.decode()) for number, when in found}


def half(log: Path, seconds: int, name: str) -> Winston:
    """A winston that logs half as fast, with an output file of its own."""
    pace = LINES_PER_SECOND // 2
    return Winston(
        log, max_bytes=64_000, count=seconds * pace, entries_per_second=pace, output=log.parent.with_name(f"{name}.out")
    )


@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=SLOW)])
def test_two_writers_of_one_log_are_both_received(seconds: int, log: Path, tmp_path: Path) -> None:
    """Each goes on writing to files that the other has renamed."""
    with Receiver() as receiver, tail(tmp_path, log, receiver) as bridge, Witness(log.parent) as witness:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        with half(log, seconds, "one") as one, half(log, seconds, "other") as other:
            one.wait()
            other.wait()
            whole = witness.write_whole(tmp_path / "whole.log")
        wait_for_witnessed(receiver, expected(whole, options=OPTIONS))
        assert bridge.stop() == 0
        assert "still grew after it was rotated away" in bridge.output
        assert bridge.status.lost_bytes == {}


def test_files_that_came_and_went_while_the_bridge_could_not_look_are_said(log: Path, tmp_path: Path) -> None:
    """A bridge that gets no time for longer than all files last cannot know what it missed, but that it did."""
    with Receiver() as receiver, tail(tmp_path, log, receiver) as bridge, Witness(log.parent) as witness:
        wait_until(lambda: bridge.status.has_state, "the bridge is up")
        with winston(log, 4) as writer:
            wait_until(lambda: receiver.spans, "it delivers")
            assert bridge.process is not None
            bridge.process.send_signal(signal.SIGSTOP)
            files = witness.files
            wait_until(lambda: witness.files > files + 6, "all files were replaced")
            bridge.process.send_signal(signal.SIGCONT)
            wait_until(lambda: f"warning: {log} was rotated all the way round" in bridge.output, "it says so")
            writer.wait()
        wait_until(lambda: "overtaken" in bridge.status.lost_bytes, "it is counted")
        assert bridge.stop() == 0
