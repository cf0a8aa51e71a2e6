"""The real server behind `otel-bridge run`, driven by the real client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from otel_bridge.sessions.ids import trace_id_of_session
from otel_bridge.sessions.span import Span
from otel_bridge.testing import Receiver
from tests.calls import Call
from tests.matching import call_spans, match
from tests.real.bridge import COMMAND
from tests.real.debug_client import FACT, FACT_RETURN, DebugClient
from tests.real.jaeger import Jaeger
from tests.real.parts import part
from tests.real.program import marked
from tests.waiting import wait_until

pytestmark = pytest.mark.real("server")

PROGRAMS = Path(__file__).parent / "programs"
PUMP, WORKER, SERVER = b"\0run\0--endpoint\0", b"otel_bridge.wrapper.worker", b"cli.mjs\0stdio\0"
TEE = (sys.executable, str(PROGRAMS / "tee.py"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


def wrapped(endpoint: str, state: Path, *options: str) -> Callable[[list[str]], list[str]]:
    """Puts `otel-bridge run` before a command."""
    words = [*COMMAND, "run", "--endpoint", endpoint, "--state-dir", str(state), *options, "--"]
    return lambda command: [*words, *command]


def behind(
    folder: Path,
    endpoint: str,
    state: Path,
    *options: str,
    log_file: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> DebugClient:
    """A client whose server is behind the wrapper; its worker may end by itself."""
    return DebugClient(
        folder,
        log_file=log_file,
        env=env,
        wrapped=wrapped(endpoint, state, *options),
        last=lambda: wait_until(lambda: find(folder, WORKER) is None, "the worker has ended"),
    )


def find(folder: Path, what: bytes) -> int | None:
    """The pid of a process that a client in this folder started; of the server, not the wrapper around it."""
    ((name, value),) = marked(folder).items()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            if what not in command or (what is SERVER and PUMP in command):
                continue
            if f"{name}={value}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
        except (OSError, ValueError):
            continue
    return None


def debug(agent: DebugClient) -> str:
    """What an agent does: breakpoints, steps, values, mistakes, three evaluations at once. Returns the session id."""
    session_id = agent.run_to_breakpoint("wrapped")
    agent.call("set_breakpoint", sessionId=session_id, file=str(FACT), line=FACT_RETURN, condition="n == 2")
    agent.call("evaluate_expression", sessionId=session_id, expression="nope + 1")
    agent.gather(
        ("evaluate_expression", {"sessionId": session_id, "expression": f"{number} * 2"}) for number in range(3)
    )
    agent.call("step_over", sessionId=session_id)
    agent.wait_paused(session_id)
    agent.call("no_such_tool", sessionId=session_id)
    agent.call("list_debug_sessions")
    agent.call("get_stack_trace", sessionId="00000000-dead-beef-0000-000000000000")
    agent.call("close_debug_session", sessionId=session_id)
    return session_id


def named(spans: list[Span], name: str) -> list[Span]:
    """The spans of that name."""
    return [span for span in spans if span.name == name]


def has_lifetime(receiver: Receiver) -> bool:
    """Whether a session has ended."""
    return bool(named(receiver.spans, "debug_session lifetime"))


def check_record(spans: list[Span], calls: list[Call]) -> None:
    """Every call is one span within the client's, with its outcome, and there is no other."""
    matches, more = match(calls, call_spans(spans))

    assert more == []
    for found in matches:
        assert found.span is not None, found.call
        # The pump is between the client's two looks at the same clock.
        assert found.call.start_ms <= found.span.start_ms
        assert found.call.end_ms is None or found.span.unanswered or found.span.end_ms <= found.call.end_ms
        assert found.span.failed == (bool(found.call.error) or found.call.success is False)


def test_spans_equal_the_clients_record(receiver: Receiver, tmp_path: Path) -> None:
    """Each call once, with states and events from the log; nothing is left behind when all is delivered."""
    state = tmp_path / "state"
    with behind(tmp_path / "server", receiver.endpoint, state) as agent:
        session_id = debug(agent)
    wait_until(lambda: not list(state.glob("runs/*")), "the run's folder is removed")

    spans = receiver.spans
    check_record(spans, agent.calls)
    trace = [span for span in spans if span.trace_id == trace_id_of_session(session_id)]
    assert {"debuggee initializing", "debuggee paused", "debuggee running"} <= {span.name for span in trace}
    (breakpoint_set, *_) = named(trace, "tools/call set_breakpoint")
    assert [event.name for event in breakpoint_set.events] == ["debug.breakpoint.set"]
    (create,) = named(trace, "tools/call create_debug_session")
    (root,) = named(trace, "debug_session python")
    assert create.start_ns // 1_000_000 == root.start_ns // 1_000_000
    assert create.attributes["network.transport"] == "pipe"
    assert create.attributes["mcp.protocol.version"]
    assert create.attributes["mcp.client.name"] == "mcp"
    (lifetime,) = named(trace, "debug_session lifetime")
    in_session = [call for call in agent.calls if session_id in (call.session_id, call.created_session_id)]
    assert lifetime.attributes["debug.session.calls"] == len(in_session)
    assert len(receiver.arrived) == len(spans)


def test_dap_spans_are_below_their_calls(receiver: Receiver, tmp_path: Path) -> None:
    """Within the span of the call's frames, before the folder with the trace goes."""
    state = tmp_path / "state"
    with behind(tmp_path / "server", receiver.endpoint, state, env={"DAP_TRACE": "1"}) as agent:
        session_id = debug(agent)
    wait_until(lambda: not list(state.glob("runs/*")), "the run's folder is removed")

    trace = [span for span in receiver.spans if span.trace_id == trace_id_of_session(session_id)]
    by_id = {span.span_id: span for span in trace}
    pairs = [(span, by_id[span.parent_id]) for span in trace if span.name.startswith("dap ")]
    below = [(span.name, parent.name) for span, parent in pairs if parent.name.startswith("tools/call ")]
    assert ("dap launch", "tools/call start_debugging") in below
    assert below.count(("dap evaluate", "tools/call evaluate_expression")) == 4
    for span, parent in pairs:
        assert parent.parent_id == 0 or parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns


@pytest.mark.real("jaeger")
def test_jaeger_has_nothing_against_it(jaeger: Jaeger, tmp_path: Path) -> None:
    """No broken parent, no doubled id, no clock to adjust."""
    state = tmp_path / "state"
    with behind(tmp_path / "server", jaeger.http_endpoint, state, env={"DAP_TRACE": "1"}) as agent:
        session_id = debug(agent)
    wait_until(lambda: not list(state.glob("runs/*")), "all is delivered")
    trace_id = f"{trace_id_of_session(session_id):032x}"
    spans = jaeger.wait_for(
        trace_id, lambda spans: any(span["operationName"] == "debug_session lifetime" for span in spans), "it is closed"
    )

    assert jaeger.warnings(trace_id) == []
    assert any(span["operationName"].startswith("dap ") for span in spans)


def test_bytes_are_equal_before_and_behind_the_pump(receiver: Receiver, tmp_path: Path) -> None:
    """In the same run, in both directions; and a child that plays it back gives the same with and without us."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    prefix = wrapped(receiver.endpoint, tmp_path / "state")
    with DebugClient(
        tmp_path / "server",
        log_file=None,
        wrapped=lambda command: [*TEE, str(outer), *prefix([*TEE, str(inner), *command])],
    ) as agent:
        debug(agent)

    for way in ("in", "out"):
        assert (outer / way).read_bytes() == (inner / way).read_bytes()
    assert (outer / "out").stat().st_size > 10_000

    received = tmp_path / "received"
    playback = [sys.executable, str(PROGRAMS / "playback.py"), str(inner / "in"), str(inner / "out"), str(received)]
    sent = (outer / "in").read_bytes()
    plain = subprocess.run(playback, input=sent, capture_output=True, check=True)
    behind = subprocess.run(prefix(playback), input=sent, stdout=subprocess.PIPE, check=True)
    assert behind.stdout == plain.stdout == (inner / "out").read_bytes()
    assert received.read_bytes() == sent


@pytest.mark.parametrize("options", [(), ("--join-caller",)])
def test_an_instrumented_clients_spans(receiver: Receiver, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Are linked from the calls, by request id; or are their parents, and the session is linked."""
    command = wrapped(receiver.endpoint, tmp_path / "state", *options)(["node", str(part("server")), "stdio"])
    agent = [sys.executable, str(PROGRAMS / "instrumented.py"), *command]
    done = subprocess.run(agent, capture_output=True, text=True, check=True)

    theirs: dict[str, Any] = {
        one["attributes"]["jsonrpc.request.id"]: one
        for one in json.loads(done.stdout.splitlines()[-1])
        if one["attributes"].get("mcp.method.name") == "tools/call"
    }
    ours = {
        str(span.attributes["jsonrpc.request.id"]): span
        for span in receiver.spans
        if span.name.startswith("tools/call ")
    }
    assert theirs.keys() == ours.keys()
    assert len(ours) == 3
    (root,) = named(receiver.spans, "debug_session python")
    for request_id, span in ours.items():
        caller = int(theirs[request_id]["trace_id"], 16), int(theirs[request_id]["span_id"], 16)
        links = [(link.trace_id, link.span_id) for link in span.links]
        is_in_session = span.attributes.get("debug.session.id") is not None
        if options:
            assert (span.trace_id, span.parent_id) == caller
            assert links == [(root.trace_id, root.span_id)] * is_in_session
        else:
            assert links == [caller]
            assert (span.parent_id == root.span_id) == is_in_session


def test_a_log_file_that_the_user_chose_is_followed_and_kept(receiver: Receiver, tmp_path: Path) -> None:
    """With what was in it before left alone."""
    log = tmp_path / "mine.log"
    old = {"timestamp": 1_700_000_000_000, "message": "session:created", "sessionId": "old", "sessionName": "old"}
    log.write_text(json.dumps(old) + "\n")
    state = tmp_path / "state"
    with behind(tmp_path / "server", receiver.endpoint, state, log_file=log) as agent:
        session_id = agent.create_session("mine")
        agent.call("close_debug_session", sessionId=session_id)
    wait_until(lambda: not list(state.glob("runs/*")), "the run's folder is removed")

    assert log.read_text().count("session:created") == 2
    assert {span.trace_id for span in receiver.spans} == {trace_id_of_session(session_id)}
    check_record(receiver.spans, agent.calls)
