"""`otel-bridge run` when something is killed or away: the pipe keeps flowing, and the next run delivers the rest."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from otel_bridge.sessions.ids import trace_id_of_session
from otel_bridge.testing import Receiver
from tests.calls import Call
from tests.matching import call_spans, match
from tests.real.bridge import TailProcess
from tests.real.debug_client import DebugClient
from tests.real.ports import reserve_port
from tests.real.test_wrapper import PUMP, SERVER, WORKER, behind, check_record, find, has_lifetime, named, wrapped
from tests.waiting import wait_until

pytestmark = pytest.mark.real("server")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


def kill(folder: Path, what: bytes) -> None:
    """SIGKILL; returns when it is gone."""
    pid = wait_until(lambda: find(folder, what), f"{what!r} runs")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: find(folder, what) != pid, f"{what!r} is gone")


def wait_until_logged(log: Path, client: DebugClient) -> None:
    """The server loses the end of its log when it exits at once: until all answers are there."""
    answered = [call for call in client.calls if call.end_ms is not None]

    def count() -> int:
        return sum(log.read_text().count(f'"message":"tool:{kind}"') for kind in ("response", "error"))

    wait_until(lambda: count() >= len(answered), "the log tells of every answer")


def next_run(endpoint: str, state: Path) -> str:
    """Another run with the same state, of another server, as long as it takes to deliver what is left; what it said."""
    with subprocess.Popen(
        wrapped(endpoint, state)(["cat"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        wait_until(lambda: not runs(state), "the next run has delivered what is left")
        _, said = run.communicate()
    return said.decode()


def runs(state: Path) -> list[Path]:
    """The folders of runs that are not done."""
    return list(state.glob("runs/*"))


def check_answered(receiver: Receiver, calls: list[Call]) -> None:
    """Every call that was answered is one span, however the others ended, and none is there twice."""
    matches, more = match(calls, call_spans(receiver.spans))

    assert more == []
    assert all(found.span is not None for found in matches if found.call.end_ms is not None)


def test_the_servers_death_ends_its_sessions(receiver: Receiver, tmp_path: Path) -> None:
    """At once, with the call in flight."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        session_id = client.run_to_breakpoint("killed")
        in_flight = client.start("evaluate_expression", sessionId=session_id, expression="__import__('time').sleep(60)")
        log = next(state.glob("runs/*/server.log"))
        wait_until(lambda: '"tool":"evaluate_expression"' in log.read_text(), "the call is logged")
        kill(folder, SERVER)
        in_flight.result()
        wait_until(lambda: not client.alive, "the wrapper ends with its server")
    wait_until(lambda: not runs(state), "the run's folder is removed")

    check_record(receiver.spans, client.calls)
    (lifetime,) = named(receiver.spans, "debug_session lifetime")
    assert lifetime.trace_id == trace_id_of_session(session_id)
    assert lifetime.attributes["debug.session.end_reason"] == "not_closed"
    (evaluate,) = named(receiver.spans, "tools/call evaluate_expression")
    assert evaluate.attributes["otel_bridge.outcome"] == "unanswered"


@pytest.mark.parametrize("has_group_killed", [False, True])
def test_the_wrappers_death_loses_nothing(receiver: Receiver, tmp_path: Path, has_group_killed: bool) -> None:
    """The server ends with it, by the end of its input or by the same kill; the worker delivers what it has."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        session_id = client.run_to_breakpoint("orphaned")
        if has_group_killed:
            os.killpg(os.getpgid(client.pid), signal.SIGKILL)
        else:
            kill(folder, PUMP)
        wait_until(lambda: find(folder, SERVER) is None, "the server has ended")
        wait_until(lambda: not runs(state), "the run's folder is removed")

    check_record(receiver.spans, client.calls)
    assert named(receiver.spans, "debug_session lifetime")[0].trace_id == trace_id_of_session(session_id)


def test_the_workers_death_stops_nothing_and_the_next_run_delivers_the_rest(receiver: Receiver, tmp_path: Path) -> None:
    """From the log, as `tail` would; what was delivered before is not delivered again."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        session_id = client.create_session("goes on")
        client.call("list_debug_sessions")
        receiver.wait_for(lambda r: len(named(r.spans, "tools/call list_debug_sessions")) == 1)
        kill(folder, WORKER)
        for _ in range(3):
            client.call("list_debug_sessions")
        client.call("close_debug_session", sessionId=session_id)
        wait_until_logged(next(state.glob("runs/*/server.log")), client)
    assert "the exporting process has failed" in (folder / "server.stderr").read_text()
    assert len(runs(state)) == 1
    assert len(call_spans(receiver.spans)) == 2

    said = next_run(receiver.endpoint, state)

    assert "what 1 earlier run had left is delivered" in said
    check_answered(receiver, client.calls)
    (lifetime,) = named(receiver.spans, "debug_session lifetime")
    assert lifetime.attributes["debug.session.calls"] == 2


def test_everything_is_killed_and_the_next_run_delivers_the_rest(receiver: Receiver, tmp_path: Path) -> None:
    """Also the call that was in flight; and only one later run does it."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        session_id = client.run_to_breakpoint("killed")
        in_flight = client.start("evaluate_expression", sessionId=session_id, expression="__import__('time').sleep(60)")
        log = next(state.glob("runs/*/server.log"))
        wait_until(lambda: '"tool":"evaluate_expression"' in log.read_text(), "the call is logged")
        for what in (WORKER, PUMP, SERVER):
            if find(folder, what):
                kill(folder, what)
        in_flight.result()
    assert len(runs(state)) == 1

    next_run(receiver.endpoint, state)

    check_answered(receiver, client.calls)
    assert len(call_spans(receiver.spans)) == len(client.calls)
    assert len(named(receiver.spans, "debug_session lifetime")) == 1
    assert next_run(receiver.endpoint, state) == ""


def test_a_backend_that_is_away_gets_it_from_the_next_run(tmp_path: Path) -> None:
    """Nothing is lost, and the client was not held up."""
    folder, state = tmp_path / "server", tmp_path / "state"
    port = reserve_port()
    with behind(folder, f"http://127.0.0.1:{port}", state) as client:
        session_id = client.create_session("unseen")
        client.call("close_debug_session", sessionId=session_id)
        wait_until_logged(next(state.glob("runs/*/server.log")), client)
    assert len(runs(state)) == 1

    with Receiver(port=port) as receiver:
        next_run(receiver.endpoint, state)
        check_answered(receiver, client.calls)
        assert has_lifetime(receiver)


def test_two_runs_at_once(receiver: Receiver, tmp_path: Path) -> None:
    """Each has state of its own."""
    state = tmp_path / "state"
    with (
        behind(tmp_path / "one", receiver.endpoint, state) as one,
        behind(tmp_path / "two", receiver.endpoint, state) as two,
    ):
        ids = {client.create_session("at once") for client in (one, two)}
        assert len(runs(state)) == 2
        for client, session_id in zip((one, two), sorted(ids), strict=True):
            client.call("get_stack_trace", sessionId=session_id)
    wait_until(lambda: not runs(state), "both are done")

    check_answered(receiver, [*one.calls, *two.calls])
    lifetimes = named(receiver.spans, "debug_session lifetime")
    assert {span.trace_id for span in lifetimes} == {trace_id_of_session(session_id) for session_id in ids}


def test_a_log_file_of_the_users_is_gone_on_with_where_a_killed_run_stopped(receiver: Receiver, tmp_path: Path) -> None:
    """By the next run with that file, while its own server writes to it: nothing twice, nothing missing."""
    log, state = tmp_path / "mine.log", tmp_path / "state"
    with behind(tmp_path / "one", receiver.endpoint, state, log_file=log) as one:
        first = one.create_session("killed")
        kill(tmp_path / "one", WORKER)
        one.call("list_debug_sessions")
        one.call("get_stack_trace", sessionId=first)
        wait_until_logged(log, one)
    assert len(runs(state)) == 1
    with behind(tmp_path / "two", receiver.endpoint, state, log_file=log) as two:
        second = two.create_session("lives")
        two.call("close_debug_session", sessionId=second)
        receiver.wait_for(lambda r: has_trace(r, first) and has_trace(r, second), 30)
    wait_until(lambda: not runs(state), "both are done")

    check_answered(receiver, [*one.calls, *two.calls])
    assert len(named(receiver.spans, "debug_session lifetime")) == 2
    assert log.read_text().count("session:created") == 2


def test_two_runs_take_up_what_is_left_once(receiver: Receiver, tmp_path: Path) -> None:
    """Whoever comes first does it, and no span is sent twice."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        client.create_session("left")
        kill(folder, WORKER)
        client.call("list_debug_sessions")
        wait_until_logged(next(state.glob("runs/*/server.log")), client)
    sent = len(receiver.arrived)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda _: next_run(receiver.endpoint, state), range(2)))

    assert sum("earlier run" in one for one in said) == 1
    check_answered(receiver, client.calls)
    again = [(span.trace_id, span.span_id) for span in receiver.arrived[sent:]]
    assert len(set(again)) == len(again)


def test_a_client_that_terminates_the_server(receiver: Receiver, tmp_path: Path) -> None:
    """As clients do with a server that does not end by itself: the signal reaches it, and all is delivered."""
    folder, state = tmp_path / "server", tmp_path / "state"
    with behind(folder, receiver.endpoint, state) as client:
        session_id = client.run_to_breakpoint("terminated")
        client.signal(signal.SIGTERM)
        wait_until(lambda: find(folder, SERVER) is None, "the server has ended")
        wait_until(lambda: not runs(state), "all is delivered")

    check_record(receiver.spans, client.calls)
    assert has_trace(receiver, session_id)


def test_a_tail_of_the_default_places_leaves_a_runs_log_alone(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds every log that a server holds open, but not that of a server behind the wrapper."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with (
        Receiver() as tails,
        behind(
            tmp_path / "one", receiver.endpoint, tmp_path / "state", env={"XDG_RUNTIME_DIR": str(tmp_path)}
        ) as wrapped_one,
        DebugClient(tmp_path / "two", log_file=None) as beside,
    ):
        ids = [client.create_session("found or not") for client in (wrapped_one, beside)]
        with TailProcess(tmp_path / "bridge", "--endpoint", tails.endpoint):
            for client, session_id in zip((wrapped_one, beside), ids, strict=True):
                client.call("close_debug_session", sessionId=session_id)
            tails.wait_for(lambda r: has_trace(r, ids[1]), 30)
            receiver.wait_for(lambda r: has_trace(r, ids[0]), 30)

        assert not has_trace(tails, ids[0])
        assert not has_trace(receiver, ids[1])


def has_trace(receiver: Receiver, session_id: str) -> bool:
    """Whether a session has arrived whole."""
    lifetimes = named(receiver.spans, "debug_session lifetime")
    return trace_id_of_session(session_id) in [span.trace_id for span in lifetimes]
