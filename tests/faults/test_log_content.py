"""Logs full of what no server should write: it is named and counted, and all around it is delivered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from otel_bridge.entries.flaw import Flaw
from otel_bridge.testing import Receiver
from tests.faults.spans import check_same, expected, wait_for_all
from tests.faults.unprivileged import unprivileged
from tests.faults.writing import duration_ms, session_lines, shifted, write_sessions
from tests.real.bridge import TailProcess, run
from tests.waiting import wait_until

BEGAN_MS = 1_790_000_000_000
LASTS_MS = duration_ms("happy")
DAY_MS = 86_400_000
MEGABYTE = 1_000_000
DEEP = 100_000


def entry(arguments: bytes, timestamp: bytes = str(BEGAN_MS).encode()) -> bytes:
    """A line of one tool call, of JSON text that no encoder would write."""
    return (
        b'{"level":"info","message":"tool:call","timestamp":' + timestamp + b',"tool":"list_debug_sessions",'
        b'"request":{"note":' + arguments + b"}}\n"
    )


def answered(arguments: bytes) -> bytes:
    """A call and its answer, of which a span is made."""
    answer = b'"level":"info","message":"tool:response","success":true,"tool":"list_debug_sessions"'
    return entry(arguments) + b"{" + answer + b',"timestamp":' + str(BEGAN_MS + 5).encode() + b"}\n"


def blocks(start: bytes, byte: bytes, size_bytes: int, end: bytes) -> Iterator[bytes]:
    """A line so long that it is better not made at once."""
    yield start
    for _ in range(size_bytes // MEGABYTE):
        yield byte * MEGABYTE
    yield end


@dataclass(frozen=True, slots=True)
class Hostile:
    """Bytes between two good sessions, and what is wrong with how many of its lines."""

    data: Callable[[], Iterator[bytes]]
    flaws: dict[Flaw, int] = field(default_factory=dict)


def of(*lines: bytes, **flaws: int) -> Hostile:
    """These lines, with so many flaws of each name."""
    return Hostile(lambda: iter(lines), {Flaw[name]: count for name, count in flaws.items()})


NESTED = b"[" * DEEP + b"]" * DEEP
QUOTED = json.dumps('{"a":' * DEEP + "1" + "}" * DEEP).encode()

HOSTILE = {
    "NULs before a line": of(b"\0" * MEGABYTE, answered(b'"after NULs"')),
    "NULs in a line": of(entry(b'"a\0b"'), b"\0" * MEGABYTE + b"\n", entry(b"\0"), NOT_JSON=2),
    "100 MB of NULs": Hostile(lambda: blocks(b"", b"\0", 100 * MEGABYTE, answered(b'"after them"'))),
    "a 100 MB entry": Hostile(lambda: blocks(entry(b'"')[:-3], b"x", 100 * MEGABYTE, b'"}}\n'), {Flaw.TOO_LONG: 1}),
    "a 100 MB line of prose": Hostile(lambda: blocks(b"", b"prose ", 100 * MEGABYTE, b"\n"), {Flaw.TOO_LONG: 1}),
    "invalid UTF-8": of(
        entry(b'"\xff\xfe"'),
        entry(b'"\xc0\x80"'),
        entry(b'"\xed\xa0\x80"'),
        b"\x80\xff\n",
        answered(b'"ok"'),
        NOT_UTF8=3,
    ),
    "lone surrogates": of(answered(b'"\\ud800"'), answered(b'{"\\udfff":"\\udcff\\ud800"}')),
    "deep nesting": of(entry(NESTED), entry(b'{"a":' * DEEP + b"1" + b"}" * DEEP), entry(b"[" * DEEP), TOO_DEEP=3),
    "deep nesting, not structured": of(NESTED + b"\n", b'{"a":' * DEEP + b"\n"),
    "deep nesting inside a text": of(answered(QUOTED), answered(json.dumps(NESTED.decode()).encode())),
    "numbers beyond a double": of(entry(b"1e400"), entry(b"-1e400"), answered(b"1e-400"), entry(b"NaN"), NOT_JSON=3),
    "huge integers": of(
        answered(b"1" + b"0" * 400), answered(b"-1" + b"0" * 400), answered(b"9" * 100_000), answered(b"1" * 20)
    ),
    "times out of this world": of(
        *(
            entry(b'"when"', timestamp)
            for timestamp in (
                b"9223372036854775808",
                b"-9223372036854775809",
                b"1" + b"0" * 400,
                b"1e300",
                b"-1",
                b"0",
                b"null",
                b"true",
                b'"+275760-09-13T00:00:00.000Z"',
                b'"9999-12-31T23:59:59.999Z"',
                b'"2026-02-30T00:00:00.000Z"',
                b'"' + b"9" * 5_000 + b'"',
                b"{}",
            )
        ),
        entry(b'"when"', b"1e400"),
        NO_TIME=13,
        NOT_JSON=1,
    ),
    "no object": of(b'[{"message":"tool:call"}]\n', b'"message":"tool:call"\n', NOT_OBJECT=1, NOT_JSON=1),
}


def session_bytes(began_ms: int) -> bytes:
    """A good session, 39 spans."""
    return b"".join(session_lines("happy", began_ms))


def tail(folder: Path, *words: str | Path) -> TailProcess:
    """A bridge that follows logs from their beginnings, with no more rights than it needs."""
    return TailProcess(folder / "bridge", *words, "--from", "beginning", wrapped=unprivileged())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lines_cost_nothing_but_themselves(name: str, tmp_path: Path) -> None:
    """Good lines before and after and a second log are delivered whole; file and offset are said, lines counted."""
    hostile = HOSTILE[name]
    log, healthy = tmp_path / "logs" / "server.log", tmp_path / "logs" / "healthy.log"
    write_sessions(log, 1, BEGAN_MS)
    write_sessions(healthy, 1, BEGAN_MS + DAY_MS)
    with Receiver() as receiver, tail(tmp_path, tmp_path / "logs", "--endpoint", receiver.endpoint) as bridge:
        wait_for_all(receiver, expected(log) | expected(healthy))
        before_bytes = bridge.resident_bytes
        most_bytes = 0
        start_byte = log.stat().st_size
        with log.open("ab", buffering=0) as file:
            for block in hostile.data():
                file.write(block)
                most_bytes = max(most_bytes, bridge.resident_bytes)
            file.write(session_bytes(BEGAN_MS + 2 * LASTS_MS))
        write_sessions(healthy, 1, BEGAN_MS + DAY_MS + 2 * LASTS_MS)

        def is_read() -> bool:
            nonlocal most_bytes
            most_bytes = max(most_bytes, bridge.resident_bytes)
            return bridge.status.lag_bytes == 0 and bridge.status.delivered_spans >= 4 * 39

        wait_until(is_read, "all is delivered", 60)
        check_same({(one.trace_id, one.span_id): one for one in receiver.spans}, expected(log) | expected(healthy))
        # What is read at once, what is decoded, and what an interpreter takes for it: far from the 100 MB of a line.
        assert most_bytes - before_bytes < 40 * MEGABYTE
        assert bridge.stop() == 0
    shown = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)
    assert shown["malformed_lines"] == {str(flaw): count for flaw, count in sorted(hostile.flaws.items())}
    for flaw in hostile.flaws:
        (first, *_) = (line for line in bridge.output.splitlines() if line.endswith(f": {flaw}"))
        assert f"{log}: skipped the line at byte " in first
        assert int(first.split(" at byte ")[1].split(":")[0]) >= start_byte
    assert "Traceback" not in bridge.output
    assert shown["lost_bytes"] == {}


# clocks


@pytest.mark.parametrize("jump_ms", [-DAY_MS, -1_500, 1_500, DAY_MS], ids=["a day back", "back", "on", "a day on"])
@pytest.mark.parametrize("end", ["", "stop", "kill"], ids=["running", "restarted", "killed"])
def test_a_clock_that_jumps_costs_nothing(jump_ms: int, end: str, tmp_path: Path) -> None:
    """Between two entries of a session, while the log rotates and the bridge is down or not, and twice in a row."""
    log, whole = tmp_path / "logs" / "server.log", tmp_path / "whole.log"
    log.parent.mkdir()
    parts = [*jumping(jump_ms)]

    def write(part: bytes) -> None:
        for path in (log, whole):
            with path.open("ab") as file:
                file.write(part)

    with Receiver() as receiver, tail(tmp_path, log, "--endpoint", receiver.endpoint) as bridge:
        write(parts[0])
        wait_until(lambda: receiver.spans, "it is followed")
        for part in parts[1:]:
            if end:
                wait_until(lambda: bridge.status.lag_bytes == 0, "the part is delivered")
                getattr(bridge, end)()
            rotate(log)
            write(part)
            if end:
                bridge.start()
        wanted = expected(whole)
        assert len(wanted) >= 3 * 39
        wait_for_all(receiver, wanted)
        assert bridge.stop() == 0
        assert bridge.status.lost_bytes == {}
        assert bridge.status.malformed_lines == {}
        assert "warning:" not in bridge.output
        assert "Traceback" not in bridge.output


def jumping(jump_ms: int) -> Iterator[bytes]:
    """Three sessions in three parts of a log; the clock jumps in the middle of each, where the parts meet too."""
    now_ms, part = BEGAN_MS, b""
    for number in range(3):
        lines = [*session_lines("happy", now_ms)]
        middle = len(lines) // 2
        for line in lines[:middle]:
            part += line
        if number:
            yield part
            part = b""
        now_ms += jump_ms
        part += b"".join(shifted(line, jump_ms) for line in lines[middle:])
        now_ms += LASTS_MS + 1
    yield part


def rotate(log: Path) -> None:
    """As the server's winston does it; all files are kept."""
    parts = sorted(log.parent.glob("server[0-9]*.log"), reverse=True)
    for part in parts:
        number = int(part.stem.removeprefix("server"))
        part.rename(log.with_name(f"server{number + 1}.log"))
    log.rename(log.with_name("server1.log"))
