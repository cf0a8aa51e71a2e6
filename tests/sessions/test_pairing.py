"""Which call an answer belongs to."""

from __future__ import annotations

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.sessions.span import Span, StatusCode
from tests.sessions.entries import (
    SID,
    call,
    closed,
    created,
    entry,
    error,
    line,
    mapped,
    named,
    one,
    response,
    since_t0_ms,
)


def evaluated(expression: str, at_ms: int, *, success: bool = True) -> Entry:
    """The result entry of an evaluation."""
    return entry(
        "tool:evaluate_expression", at_ms, expression=expression, success=success, sessionId=SID, sessionName="demo"
    )


def ends(spans: list[Span], tool: str, by: str) -> dict[str, float]:
    """When each call of a tool ended, in ms, by an argument of it."""
    found = {}
    for span in named(spans, f"tools/call {tool}"):
        arguments = str(span.attributes.get("gen_ai.tool.call.arguments", ""))
        found[arguments.partition(f'"{by}":"')[2].partition('"')[0]] = since_t0_ms(span.end_ns)
    return found


def test_a_response_ends_the_oldest_call_of_its_tool() -> None:
    """Without any evidence, answers come in the order of the calls."""
    spans = mapped(
        [
            created(0),
            call("get_output", 1, mark="a"),
            call("get_output", 2, mark="b"),
            response("get_output", 5),
            response("get_output", 9),
        ]
    )

    assert ends(spans, "get_output", "mark") == {"a": 5, "b": 9}


def test_a_response_belongs_to_the_call_that_its_result_names() -> None:
    """A fast evaluation that overtakes a slow one ends its own span."""
    spans = mapped(
        [
            created(0),
            call("evaluate_expression", 1, expression="slow"),
            call("evaluate_expression", 2, expression="fast"),
            evaluated("fast", 5),
            response("evaluate_expression", 5),
            evaluated("slow", 900),
            response("evaluate_expression", 900),
        ]
    )

    assert ends(spans, "evaluate_expression", "expression") == {"slow": 900, "fast": 5}


def test_an_error_of_a_failed_validation_overtakes_the_slow_call_before_it() -> None:
    """`:error` is the result of the call that failed, whatever else is in flight."""
    spans = mapped(
        [
            created(0),
            call("evaluate_expression", 1, expression="slow"),
            call("evaluate_expression", 2, expression="long"),
            entry("tool:evaluate_expression:error", 3, expression="long", error="too long", sessionId=SID),
            call("evaluate_expression", 4, expression="fast"),
            error("evaluate_expression", 5, message="too long"),
            evaluated("slow", 900),
            response("evaluate_expression", 900),
            evaluated("fast", 950),
            response("evaluate_expression", 950),
        ]
    )

    assert ends(spans, "evaluate_expression", "expression") == {"slow": 900, "long": 5, "fast": 950}


def test_an_expression_is_recognised_though_its_result_was_cut() -> None:
    """The server cuts an expression at 100 UTF-16 units, even through a character."""
    whole = "'" + "\U0001f600" * 90 + "'"
    spans = mapped(
        [
            created(0),
            call("evaluate_expression", 1, expression=whole),
            evaluated("'" + "\U0001f600" * 49 + "\ufffd", 5),
            response("evaluate_expression", 6),
        ]
    )

    assert [since_t0_ms(span.end_ns) for span in named(spans, "tools/call evaluate_expression")] == [6]


def test_a_result_whose_call_was_lost_keeps_its_response_from_other_calls() -> None:
    """The response of a lost call becomes a partial span; the calls after it keep their own answers."""
    spans = mapped(
        [
            created(0),
            call("evaluate_expression", 1, expression="kept"),
            evaluated("lost", 5),
            response("evaluate_expression", 5),
            evaluated("kept", 90),
            response("evaluate_expression", 90),
        ]
    )
    calls = named(spans, "tools/call evaluate_expression")

    assert [(s.attributes.get("otel_bridge.partial"), since_t0_ms(s.end_ns)) for s in calls] == [
        (True, 5.001),
        (None, 90),
    ]


def test_a_lost_response_does_not_shift_the_pairs_after_it() -> None:
    """A response far from the oldest result belongs to the fresh one; the old call ends at its result, unanswered."""
    spans = mapped(
        [
            created(0),
            call("evaluate_expression", 1, expression="first"),
            evaluated("first", 5),
            call("evaluate_expression", 1000, expression="second"),
            evaluated("second", 1005),
            response("evaluate_expression", 1006),
        ]
    )

    assert ends(spans, "evaluate_expression", "expression") == {"first": 5, "second": 1006}
    assert [s.attributes.get("otel_bridge.outcome") for s in named(spans, "tools/call evaluate_expression")] == [
        "unanswered",
        None,
    ]


def test_a_step_that_is_answered_while_another_runs_was_refused() -> None:
    """The response read before the pause belongs to the second step ("Not paused")."""
    items: list[Entry | StateChange] = [
        created(0),
        line("created", "paused", 1),
        call("step_over", 10, mark="first"),
        line("paused", "running", 11),
        call("step_over", 12, mark="second"),
        response("step_over", 13),
        line("running", "paused", 40),
        response("step_over", 55),
    ]

    assert ends(mapped(items), "step_over", "mark") == {"first": 55, "second": 13}


def test_of_two_closes_the_response_is_the_later_calls_and_the_error_the_earliers() -> None:
    """Seen of the real server: closed, response, and 830 ms later an error for the same id."""
    spans = mapped(
        [
            created(0),
            call("close_debug_session", 1, mark="first"),
            call("close_debug_session", 2, mark="second"),
            closed(3),
            response("close_debug_session", 4),
            error("close_debug_session", 830),
        ]
    )

    assert ends(spans, "close_debug_session", "mark") == {"first": 830, "second": 4}
    assert one(spans, "debug_session lifetime").attributes["debug.session.end_reason"] == "closed"


def test_concurrent_creates_are_told_apart_by_name() -> None:
    """The order of sessions is not the order of their create calls."""
    first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    spans = mapped(
        [
            call("create_debug_session", 0, None, name="a", language="python"),
            call("create_debug_session", 1, None, name="b", language="python"),
            created(500, second, "b"),
            response("create_debug_session", 501, None),
            created(600, first, "a"),
            response("create_debug_session", 601, None),
        ]
    )

    creates = named(spans, "tools/call create_debug_session")
    assert [(s.attributes["debug.session.name"], since_t0_ms(s.start_ns), since_t0_ms(s.end_ns)) for s in creates] == [
        ("b", 1, 501),
        ("a", 0, 601),
    ]


def test_the_response_of_a_create_that_attaches_comes_after_that_of_a_later_create() -> None:
    """A create that attaches is answered late; the response in between is the other's."""
    first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    spans = mapped(
        [
            call("create_debug_session", 0, None, name="a", language="python", port=1),
            created(10, first, "a"),
            call("create_debug_session", 20, None, name="b", language="python"),
            created(30, second, "b"),
            response("create_debug_session", 31, None),
            response("create_debug_session", 9000, None),
        ]
    )

    creates = named(spans, "tools/call create_debug_session")
    assert [(s.attributes["debug.session.name"], since_t0_ms(s.end_ns)) for s in creates] == [("b", 31), ("a", 9000)]


def test_a_failed_create_is_a_trace_of_its_own() -> None:
    """No session was made, so there is no trace to put it in."""
    spans = mapped([call("create_debug_session", 0, None, language="cobol"), error("create_debug_session", 4, None)])

    (only,) = spans
    assert (only.parent_id, only.status, only.attributes["error.type"]) == (0, StatusCode.ERROR, "-32602")


def test_no_pairing_crosses_session_ids_of_any_type() -> None:
    """Calls that gave a number, an object or nothing as session id get the answers that give the same."""
    items = []
    ids: tuple[object, ...] = (12345, {"a": 1}, None)
    for at, sid in enumerate(ids):
        items.append(entry("tool:call", at, tool="get_output", sessionId=sid, request={"sessionId": sid}))
    for at, sid in enumerate(reversed(ids)):
        items.append(entry("tool:response", 10 + at, tool="get_output", sessionId=sid, success=True))

    spans = mapped(items)
    assert [(since_t0_ms(s.start_ns), since_t0_ms(s.end_ns)) for s in spans] == [(2, 10), (1, 11), (0, 12)]
    assert len({span.trace_id for span in spans}) == 3
