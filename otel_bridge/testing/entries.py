"""A small debug session as the server logs it, for tests of programs that hand entries to the bridge."""

from __future__ import annotations

SESSION_ID = "7d2c4b10-5f3e-4a86-9c1d-0b8e6f2a9d47"
START_MS = 1_796_071_984_000
"""2026-11-30T22:13:04Z."""


def session_entries(
    session_id: str = SESSION_ID, name: str = "demo", *, start_ms: int = START_MS, is_closed: bool = True
) -> list[dict[str, object]]:
    """The entries of one session: created, a breakpoint set, started, paused at it, an evaluation, closed.

    They are as in the log, in its order, with `message` and `timestamp` in Unix milliseconds, beginning at `start_ms`.
    Without `is_closed` they end before the close, as for a server that was stopped. Each call gives new objects.
    """
    session = {"sessionId": session_id, "sessionName": name}
    place = {"file": "/app/fact.py", "line": 4}
    create = {"language": "python", "name": name}
    steps: list[tuple[int, str, dict[str, object]]] = [
        (0, "tool:call", {"tool": "create_debug_session", "request": create}),
        (3, "session:created", {**session, "language": "python", "executablePath": "python3"}),
        (3, "tool:response", {"tool": "create_debug_session", "success": True}),
        (20, "tool:call", _call("set_breakpoint", session, place)),
        (22, "debug:breakpoint", {**session, "event": "set", "breakpointId": "bp-1", **place, "verified": False}),
        (23, "tool:response", {**session, "tool": "set_breakpoint", "success": True}),
        (40, "tool:call", _call("start_debugging", session, {"scriptPath": "/app/fact.py"})),
        (390, "debug:breakpoint", {**session, "event": "verified", "breakpointId": "bp-1", **place, "verified": True}),
        (410, "debug:state", {**session, "event": "paused", "reason": "breakpoint", "location": place, "threadId": 1}),
        (415, "tool:response", {**session, "tool": "start_debugging", "success": True}),
        (430, "tool:call", _call("evaluate_expression", session, {"expression": "n * 2"})),
        (
            436,
            "debug:evaluate",
            {**session, "event": "expression", "expression": "n * 2", "result": "10", "type": "int"},
        ),
        (437, "tool:response", {**session, "tool": "evaluate_expression", "success": True}),
    ]
    if is_closed:
        steps += [
            (600, "tool:call", _call("close_debug_session", session, {})),
            (650, "session:closed", dict(session)),
            (651, "tool:response", {**session, "tool": "close_debug_session", "success": True}),
        ]
    return [
        {"level": "info", "namespace": "debug-mcp", "message": kind, "timestamp": start_ms + after_ms, **fields}
        for after_ms, kind, fields in steps
    ]


def _call(tool: str, session: dict[str, str], request: dict[str, object]) -> dict[str, object]:
    return {**session, "tool": tool, "request": {"sessionId": session["sessionId"], **request}}
