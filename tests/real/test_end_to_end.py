"""The real server, a real client, a real program, `otel-bridge tail` beside it, and a real Jaeger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_bridge.sessions.ids import trace_id_of_session
from tests.calls import Call
from tests.matching import AHEAD_MS, CallSpan, match
from tests.real.bridge import TailProcess
from tests.real.debug_client import FACT, FACT_RETURN, DebugClient
from tests.real.jaeger import Jaeger, tags
from tests.waiting import wait_until

pytestmark = pytest.mark.real("jaeger", "server")


@pytest.fixture(params=[0, 10], ids=["no skew adjustment", "skew adjustment of 10 s"])
def skew_jaeger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Jaeger]:
    """A Jaeger that adjusts clocks, and one that does not."""
    with Jaeger(tmp_path / "jaeger", max_clock_skew_adjust_s=request.param) as jaeger:
        yield jaeger


def debug(client: DebugClient) -> str:
    """What an agent does: breakpoints, steps, values, mistakes, three evaluations at once. Returns the session id."""
    session_id = client.run_to_breakpoint("end to end")
    client.call("set_breakpoint", sessionId=session_id, file=str(FACT), line=FACT_RETURN, condition="n == 2")
    client.call("get_local_variables", sessionId=session_id)
    client.call("evaluate_expression", sessionId=session_id, expression="1 + 1")
    client.call("evaluate_expression", sessionId=session_id, expression="nope + 1")
    client.call("step_over", sessionId=session_id)
    client.wait_paused(session_id)
    client.call("no_such_tool", sessionId=session_id)
    client.call("set_breakpoint", sessionId=session_id, file="relative.py", line=1)
    client.gather(
        ("evaluate_expression", {"sessionId": session_id, "expression": f"{number} * 2"}) for number in range(3)
    )
    client.call("list_debug_sessions")
    client.call("get_stack_trace", sessionId="00000000-dead-beef-0000-000000000000")
    return session_id


def call_spans(jaeger: Jaeger, trace_ids: list[str]) -> list[CallSpan]:
    """The tool calls that Jaeger shows in these traces."""
    found = []
    for trace_id in trace_ids:
        for span in jaeger.spans(trace_id):
            if span["operationName"].startswith("tools/call "):
                told = tags(span)
                found.append(
                    CallSpan(
                        trace_id,
                        told["gen_ai.tool.name"],
                        json.loads(told.get("gen_ai.tool.call.arguments", "null")),
                        span["startTime"] / 1000,
                        (span["startTime"] + span["duration"]) / 1000,
                        bool(told.get("error")),
                        told.get("otel.status_description", ""),
                        told.get("otel_bridge.outcome") == "unanswered",
                        bool(told.get("otel_bridge.partial")),
                    )
                )
    return sorted(found, key=lambda span: span.start_ms)


def in_session(calls: list[Call], session_id: str) -> list[Call]:
    """The calls of a session, its create among them."""
    return [call for call in calls if session_id in (call.session_id, call.created_session_id)]


def check_equal(jaeger: Jaeger, session_id: str, calls: list[Call]) -> None:
    """Every call of the session is exactly one span of its trace, with the client's end and outcome."""
    trace_id = f"{trace_id_of_session(session_id):032x}"
    matches, more = match(in_session(calls, session_id), call_spans(jaeger, [trace_id]))

    assert more == []
    for found in matches:
        assert found.span is not None, found.call
        assert found.call.end_ms is not None
        assert found.call.start_ms - AHEAD_MS <= found.span.end_ms <= found.call.end_ms + AHEAD_MS
        if found.call.error:
            assert found.span.failed


def has_root(spans: list[dict[str, Any]]) -> bool:
    """Whether one of the spans has no parent."""
    return any(not span.get("references") for span in spans)


def test_a_session_is_in_jaeger_while_it_runs_and_equals_the_clients_record_after(
    skew_jaeger: Jaeger, tmp_path: Path
) -> None:
    """With a root and no warning all the time, whatever Jaeger does about clock skew."""
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    with (
        TailProcess(tmp_path / "bridge", log.parent, "--endpoint", skew_jaeger.http_endpoint) as bridge,
        DebugClient(tmp_path / "server", log_file=log) as client,
    ):
        session_id = debug(client)
        trace_id = f"{trace_id_of_session(session_id):032x}"
        expected = len([call for call in in_session(client.calls, session_id) if call.end_ms])
        spans = skew_jaeger.wait_for(
            trace_id,
            lambda spans: sum(span["operationName"].startswith("tools/call ") for span in spans) >= expected,
            "the calls so far are there",
        )
        assert has_root(spans)
        assert skew_jaeger.warnings(trace_id) == []

        client.call("close_debug_session", sessionId=session_id)
        skew_jaeger.wait_for(
            trace_id, lambda spans: any(s["operationName"] == "debug_session lifetime" for s in spans), "it is closed"
        )
        assert skew_jaeger.warnings(trace_id) == []
        check_equal(skew_jaeger, session_id, client.calls)
        client.close()
        assert bridge.stop() == 0


def test_the_same_through_grpc(jaeger: Jaeger, tmp_path: Path) -> None:
    """The trace that gRPC brings is the client's record too."""
    log = tmp_path / "server.log"
    with (
        TailProcess(tmp_path / "bridge", log, "--endpoint", jaeger.grpc_endpoint, "--protocol", "grpc") as bridge,
        DebugClient(tmp_path / "server", log_file=log) as client,
    ):
        session_id = debug(client)
        client.call("close_debug_session", sessionId=session_id)
        trace_id = f"{trace_id_of_session(session_id):032x}"
        jaeger.wait_for(
            trace_id, lambda spans: any(s["operationName"] == "debug_session lifetime" for s in spans), "it is closed"
        )
        assert jaeger.warnings(trace_id) == []
        check_equal(jaeger, session_id, client.calls)
        assert bridge.stop() == 0


def test_a_server_that_dies_ends_its_sessions_at_once(jaeger: Jaeger, tmp_path: Path) -> None:
    """The bridge saw the process alive with this file open; nobody waits for the idle timeout."""
    log = tmp_path / "server.log"
    with (
        TailProcess(tmp_path / "bridge", log, "--endpoint", jaeger.http_endpoint),
        DebugClient(tmp_path / "server", log_file=log) as client,
    ):
        session_id = client.run_to_breakpoint("killed")
        trace_id = f"{trace_id_of_session(session_id):032x}"
        jaeger.wait_for(trace_id, has_root, "its root is there")
        wait_until(lambda: "writers" in _saved(tmp_path), "the bridge knows who writes the log")
        client.kill()
        spans = jaeger.wait_for(
            trace_id, lambda spans: any(s["operationName"] == "debug_session lifetime" for s in spans), "it is over"
        )

        (lifetime,) = [span for span in spans if span["operationName"] == "debug_session lifetime"]
        assert tags(lifetime)["debug.session.end_reason"] == "not_closed"
        assert jaeger.warnings(trace_id) == []


def _saved(tmp_path: Path) -> str:
    path = tmp_path / "bridge" / "state" / "state.db"
    if not path.exists():
        return ""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return "\n".join(database.iterdump())


def test_dap_requests_are_below_their_calls_in_jaeger(jaeger: Jaeger, tmp_path: Path) -> None:
    """Where the server wrote a DAP trace, found beside the log while both grow; each inside its parent's time."""
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    with (
        TailProcess(tmp_path / "bridge", log, "--endpoint", jaeger.http_endpoint) as bridge,
        DebugClient(tmp_path / "server", log_file=log, env={"DAP_TRACE": "1"}) as client,
    ):
        session_id = debug(client)
        client.call("close_debug_session", sessionId=session_id)
        trace_id = f"{trace_id_of_session(session_id):032x}"
        (path,) = log.parent.glob(f"sessions/{session_id}/run-*/dap-trace-{session_id}.ndjson")
        messages = [json.loads(line)["payload"] for line in path.read_text().splitlines()]
        asked = sum(message["type"] == "request" for message in messages)
        spans = jaeger.wait_for(
            trace_id,
            lambda spans: sum(span["operationName"].startswith("dap ") for span in spans) == asked,
            f"its {asked} DAP requests are there",
            60,
        )
        by_id = {span["spanID"]: span for span in spans}
        parents = {
            span["operationName"]: by_id[span["references"][0]["spanID"]]["operationName"]
            for span in spans
            if span["operationName"] in ("dap launch", "dap next")
        }

        assert parents == {"dap launch": "tools/call start_debugging", "dap next": "tools/call step_over"}
        assert jaeger.warnings(trace_id) == []
        assert bridge.stop() == 0
