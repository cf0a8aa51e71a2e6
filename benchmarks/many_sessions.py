"""Very many sessions open at once, and very many entries through: does memory stay, does a line cost what it did?

A real `otel-bridge tail` reads a log in which all sessions are opened first; then evaluations and steps follow, each of
a session at random, so that every batch touches thousands of them. It is looked at while it works: how far it is by its
own saved mark, what it has used, what lies in memory. Filelog reads the same log, and parses it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.filelog import read_whole
from benchmarks.live_log import entry_line, opening
from benchmarks.processes import cpu_s, resident_bytes
from benchmarks.report import Plan, Row
from benchmarks.sink import sink
from otel_bridge.state.database import connect
from otel_bridge.state.place import DATABASE
from otel_bridge.state.values import loaded_object
from tests.real.bridge import TailProcess

_START_MS = 1_796_071_984_000
_ENTRIES_A_STEP = 3
_LOOK_EVERY_S = 0.2
_WARM = 0.3
_LAST = 0.7
_DEADLINE_S = 600.0


@dataclass(frozen=True, slots=True)
class _Look:
    """How far the bridge is (from 0 to 1), and what it has used until then."""

    done: float
    cpu_s: float
    resident_bytes: int


def step(session_id: str, name: str, time_ms: int, *, is_evaluation: bool) -> bytes:
    """A call of it, an event, and the response: nothing is left open."""
    session, request = {"sessionId": session_id, "sessionName": name}, {"sessionId": session_id}
    if is_evaluation:
        tool, evaluated = {"tool": "evaluate_expression"}, {"expression": "len(values) * 2"}
        request |= evaluated
        result = {"event": "expression", **evaluated, "result": "42", "type": "int"}
        event = entry_line("debug:evaluate", time_ms, session, result)
    else:
        tool, place = {"tool": "step_over"}, {"file": "/app/cart.py", "line": time_ms % 90}
        pause = {"event": "paused", "reason": "step", "location": place, "threadId": 1}
        event = entry_line("debug:state", time_ms, session, pause)
    call = entry_line("tool:call", time_ms, session, tool, {"request": request})
    return call + event + entry_line("tool:response", time_ms, session, tool, {"success": True})


def measure(plan: Plan) -> Iterator[Row]:
    """Memory and time a line, early and late; what an open session takes."""
    sessions, entries = plan.choose(10_000, 300), plan.choose(1_000_000, 40_000)
    log = plan.folder / "sessions.log"
    plan.say(f"sessions: writing {entries:,} entries of {sessions:,} sessions")
    entries = _write(log, sessions, entries)
    plan.say("sessions: filelog")
    filelog_cpu_s = read_whole(plan.folder / "filelog", log, entries).cpu_s
    plan.say("sessions: the bridge")
    looks = _watch(plan.folder / "bridge", log)
    end = looks[-1]
    warm = next(look for look in looks if look.done >= _WARM)
    early_s = (_cpu_s_at(looks, _LAST) - _cpu_s_at(looks, _WARM)) / (_LAST - _WARM)
    late_s = (end.cpu_s - _cpu_s_at(looks, _LAST)) / (1 - _LAST)
    what = f"{sessions:,} open sessions, {entries:,} entries"
    yield Row(f"{what}: CPU an entry", "µs", end.cpu_s / entries * 1e6, filelog_cpu_s / entries * 1e6)
    yield Row("- CPU an entry in the last third ÷ in the one before", "×", late_s / early_s, most=1.1)
    yield Row("- memory at the end", "MB", end.resident_bytes / 1e6)
    yield Row("- memory at the end ÷ after the first third", "×", end.resident_bytes / warm.resident_bytes, most=1.05)
    command = [sys.executable, "-m", "benchmarks.session_bytes", str(sessions)]
    each_bytes = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    yield Row("- memory an open session without open calls", "bytes", each_bytes, most=2_000)


def _write(path: Path, sessions: int, entries: int) -> int:
    """Gives the number of entries, which is a multiple of three."""
    chosen = random.Random(1)
    ids = [str(uuid.UUID(int=chosen.getrandbits(128), version=4)) for _ in range(sessions)]
    time_ms = _START_MS
    steps = entries // _ENTRIES_A_STEP - sessions
    with path.open("wb") as file:
        for number, session_id in enumerate(ids):
            file.write(opening(session_id, f"session {number}", time_ms := time_ms + 5))
        for number in range(steps):
            one = chosen.randrange(sessions)
            file.write(step(ids[one], f"session {one}", time_ms := time_ms + 5, is_evaluation=number % 2 == 0))
    return (sessions + steps) * _ENTRIES_A_STEP


def _cpu_s_at(looks: Sequence[_Look], done: float) -> float:
    """What was used until the bridge was so far, between two looks in a straight line."""
    before = after = _Look(0.0, 0.0, 0)
    for after in looks:
        if after.done >= done:
            break
        before = after
    share = (done - before.done) / (after.done - before.done)
    return before.cpu_s + share * (after.cpu_s - before.cpu_s)


def _watch(folder: Path, log: Path) -> list[_Look]:
    """Looks, from the first saved mark until the whole log is delivered."""
    size_bytes = log.stat().st_size
    looks: list[_Look] = []
    deadline_s = time.monotonic() + _DEADLINE_S
    with sink() as endpoint, TailProcess(folder, log, "--from", "beginning", "--endpoint", endpoint) as bridge:
        assert bridge.process is not None
        while not looks or looks[-1].done < 1:
            if not bridge.running or time.monotonic() > deadline_s:
                raise RuntimeError(f"the bridge has not delivered {log}:\n{bridge.output[-2000:]}")
            time.sleep(_LOOK_EVERY_S)
            pid = bridge.process.pid
            looks.append(_Look(_delivered_bytes(bridge.state_dir) / size_bytes, cpu_s(pid), resident_bytes(pid)))
    return looks


def _delivered_bytes(state_dir: Path) -> int:
    """The saved mark. Only that is read: who reads all sessions over and over holds up the journal, and is measured."""
    if not (state_dir / DATABASE).exists():
        return 0
    with closing(connect(state_dir / DATABASE, "ro")) as connection:
        rows = connection.execute("SELECT value FROM checkpoint").fetchall()
    return sum(int(str(loaded_object(value)["offset_bytes"])) for (value,) in rows)
