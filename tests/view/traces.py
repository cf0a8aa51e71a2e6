"""Hand-made traces in the shape that the mapping gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from otel_bridge.sessions.span import Attributes, AttributeValue, Span, SpanEvent, SpanKind, StatusCode

TRACE_ID = 0x806A0589_7B86_490D_9928_679AB71012C1
ROOT_ID = 0xA1
START_NS = 1_796_071_983_998_000_000
"""2026-11-30 20:53:03.998 UTC"""


def at(ms: float) -> int:
    """The Unix time in ns, `ms` milliseconds after the start of the session."""
    return START_NS + round(ms * 1_000_000)


def attributes(**more: AttributeValue) -> dict[str, AttributeValue]:
    """The attributes that every span of a session has, and some of its own (`__` for a dot)."""
    always: dict[str, AttributeValue] = {
        "debug.session.id": "806a0589",
        "debug.session.name": "cart total",
        "debug.session.language": "python",
    }
    return always | {key.replace("__", "."): value for key, value in more.items()}


def span(
    span_id: int,
    name: str,
    start_ms: float,
    end_ms: float,
    *,
    parent_id: int = ROOT_ID,
    with_attributes: Attributes | None = None,
    events: Sequence[SpanEvent] = (),
    error: str | None = None,
) -> Span:
    """A span of the session; `error` makes it a failure with that message."""
    return Span(
        trace_id=TRACE_ID,
        span_id=span_id,
        parent_id=parent_id,
        name=name,
        kind=SpanKind.INTERNAL,
        start_ns=at(start_ms),
        end_ns=max(at(end_ms), at(start_ms) + 1_000),
        attributes=attributes() if with_attributes is None else with_attributes,
        events=tuple(events),
        status=StatusCode.UNSET if error is None else StatusCode.ERROR,
        status_message=error or "",
    )


def root(name: str = "cart total", language: str = "python", **more: AttributeValue) -> Span:
    """The instant that a session's trace hangs on."""
    return Span(
        TRACE_ID,
        ROOT_ID,
        0,
        f"debug_session {language}",
        SpanKind.INTERNAL,
        START_NS,
        START_NS + 1,
        attributes(debug__session__name=name, debug__session__language=language, **more),
    )


def call(
    span_id: int,
    tool: str,
    start_ms: float,
    end_ms: float,
    *,
    events: Sequence[SpanEvent] = (),
    error: str | None = None,
    arguments: dict[str, object] | None = None,
    **more: AttributeValue,
) -> Span:
    """A tool call's span. A `file` and `line` among the arguments become its place, as the mapping does it."""
    own: dict[str, AttributeValue] = {"gen_ai.tool.name": tool}
    if arguments is not None:
        own["gen_ai.tool.call.arguments"] = json.dumps(arguments)
        own |= place(str(arguments["file"]), arguments.get("line")) if "file" in arguments else {}
    if error is not None:
        own["error.type"] = "-32602" if error.startswith("MCP error -32602") else "tool_error"
    return span(
        span_id,
        f"tools/call {tool}",
        start_ms,
        end_ms,
        with_attributes=attributes(**more) | own,
        events=events,
        error=error,
    )


def state(span_id: int, name: str, start_ms: float, end_ms: float, **more: AttributeValue) -> Span:
    """A stretch of one state of the debugged program."""
    return span(span_id, f"debuggee {name}", start_ms, end_ms, with_attributes=attributes(**more))


def lifetime(end_ms: float, reason: str = "closed", **more: AttributeValue) -> Span:
    """The span that ends a session."""
    own = attributes(debug__session__end_reason=reason, **more)
    return span(0xFF, "debug_session lifetime", 0, end_ms, with_attributes=own)


def event(name: str, ms: float, file: str | None = None, line: int | None = None) -> SpanEvent:
    """An event, with a place if it has one."""
    return SpanEvent(name, at(ms), place(file, line) if file else {})


def place(file: str, line: object = None) -> dict[str, AttributeValue]:
    """The attributes of a place in the source."""
    attributes: dict[str, AttributeValue] = {"code.file.path": file}
    return attributes | ({"code.line.number": line} if isinstance(line, int) else {})


CART = "/workspace/shop/cart.py"


def cart_session() -> list[Span]:
    """A session of four seconds with what a picture can hold: failures, pauses, events, DAP requests, no answer."""
    basket = "MCP error -32602: Breakpoint file not found: '/workspace/shop/basket.py'\nLooked for: '[bold]x[/]'"
    verified = [event("debug.breakpoint.verified", 2150, CART, line) for line in (15, 9)]
    return [
        root(),
        call(1, "create_debug_session", 0, 310, arguments={"language": "python", "name": "cart total"}),
        call(2, "set_breakpoint", 350, 352, error=basket, arguments={"file": "/workspace/shop/basket.py", "line": 15}),
        call(
            3,
            "set_breakpoint",
            400,
            404,
            events=[event("debug.breakpoint.set", 402, CART, 15)],
            arguments={"file": CART, "line": 15},
        ),
        call(4, "start_debugging", 500, 2160, events=[*verified, event("debug.state.paused", 2100)]),
        span(41, "dap launch", 900, 1900, parent_id=4),
        span(42, "dap setBreakpoints", 1950, 1990, parent_id=4),
        state(5, "initializing", 600, 1900),
        state(6, "running", 1900, 2100),
        state(7, "paused", 2100, 3000, debug__state__reason="breakpoint", **place(CART, 15)),
        call(8, "get_local_variables", 2200, 2526),
        call(9, "evaluate_expression", 2600, 2694, arguments={"expression": "DISCOUNTS[item]"}),
        call(10, "evaluate_expression", 2700, 2715, error="Unable to find thread.", arguments={"expression": "x"}),
        call(11, "step_over", 3000, 3100, events=[event("debug.state.running", 3090)]),
        state(12, "running", 3000, 3090),
        state(13, "paused", 3090, 3600, debug__state__reason="step"),
        state(14, "running", 3600, 4000),
        call(15, "continue_execution", 3600, 3600, events=[event("debug.state.stopped", 3950)]),
        call(16, "get_output", 3900, 4000, otel_bridge__outcome="unanswered"),
        lifetime(4000, "not_closed"),
    ]


def long_session(calls: int, failed: frozenset[int] = frozenset()) -> list[Span]:
    """A session of very many calls: one step, two evaluations, over and over; the numbered calls fail."""
    spans = [root("burst")]
    for number in range(calls):
        tool = ("step_over", "evaluate_expression", "evaluate_expression")[number % 3]
        error = "no frame" if number in failed else None
        spans.append(call(1000 + number, tool, number * 10, number * 10 + 5, error=error))
        if tool == "step_over":
            spans.append(state(9000 + number, "paused", number * 10 + 5, number * 10 + 30, debug__state__reason="step"))
    return [*spans, lifetime(calls * 10)]
