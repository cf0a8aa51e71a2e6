"""Sessions of one log: how they begin, end, come back, and survive a restart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import restore, take_changes
from otel_bridge.sessions.span import Span, StatusCode
from tests.sessions.entries import (
    OTHER,
    SID,
    T0,
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
    state,
)

HOUR_MS = 3_600_000


def test_the_trace_id_is_the_session_id() -> None:
    """A session id from the log can be pasted into a backend's search box."""
    assert {int(SID.replace("-", ""), 16)} == {span.trace_id for span in mapped([created(0), closed(5)])}


def test_the_root_comes_first_and_is_an_instant_at_the_create_call() -> None:
    """The server often never says that a session ended; a root that waited would leave orphans."""
    mapping = LogMapping(MappingOptions())
    before = mapping.take([call("create_debug_session", 0, None, name="demo", language="python")])
    (root,) = mapping.take([created(310, executablePath="/usr/bin/python3")])

    assert before == []
    assert (
        root.name,
        root.parent_id,
        since_t0_ms(root.start_ns),
        root.end_ns - root.start_ns,
    ) == ("debug_session python", 0, 0, 1)
    assert root.attributes["process.executable.path"] == "/usr/bin/python3"


def test_every_span_of_a_session_hangs_on_its_root_and_names_the_session() -> None:
    """A search finds spans, not roots."""
    spans = mapped([created(0), call("get_output", 1), response("get_output", 2), state("paused", 3), closed(9)])
    root = spans[0]

    assert {root.span_id} == {span.parent_id for span in spans[1:]}
    assert {(SID, "demo", "python")} == {
        tuple(span.attributes[f"debug.session.{name}"] for name in ("id", "name", "language")) for span in spans
    }


def test_the_lifetime_is_sent_when_the_close_itself_is_answered() -> None:
    """The close is in flight when `session:closed` is written."""
    mapping = LogMapping(MappingOptions())
    mapping.take([created(0), call("close_debug_session", 5), closed(9, duration=9)])
    spans = mapping.take([response("close_debug_session", 12)])

    assert [span.name for span in spans] == ["tools/call close_debug_session", "debug_session lifetime"]
    assert (since_t0_ms(spans[1].start_ns), since_t0_ms(spans[1].end_ns)) == (0, 9)
    assert tuple(spans[1].attributes[f"debug.session.{name}"] for name in ("duration_ms", "calls", "failed")) == (
        9,
        1,
        0,
    )


def test_a_call_on_a_closed_session_is_in_its_trace() -> None:
    """The agent went on with an id that the server no longer knows."""
    late = [call("get_output", 20, session_name="Unknown Session"), error("get_output", 21)]
    spans = mapped([created(0), closed(5), *late])
    late_call = one(spans, "tools/call get_output")

    assert (int(SID.replace("-", ""), 16), spans[0].span_id) == (late_call.trace_id, late_call.parent_id)
    assert 1 == len(named(spans, "debug_session lifetime")) == len(named(spans, "debug_session python"))


def test_a_session_that_is_never_closed_ends_at_its_last_entry() -> None:
    """On end of input, SIGTERM or SIGKILL the server writes no `session:closed`."""
    spans = mapped([created(0), line("created", "running", 10), call("get_output", 40)])

    assert {40} == {
        since_t0_ms(span.end_ns) for span in spans if span.name in ("debuggee running", "debug_session lifetime")
    }
    assert one(spans, "debug_session lifetime").attributes["debug.session.end_reason"] == "not_closed"
    unanswered = one(spans, "tools/call get_output")
    assert (unanswered.status, unanswered.attributes["otel_bridge.outcome"]) == (StatusCode.UNSET, "unanswered")


def test_a_gap_ends_every_session_of_the_log() -> None:
    """A state line counts as an entry; silence of the idle timeout is taken for the end of the server."""
    mapping = LogMapping(MappingOptions())
    mapping.take([created(0), created(5, OTHER), line("created", "running", 10)])

    before = mapping.take([line("running", "paused", 10 + HOUR_MS - 1)])
    ended = mapping.take([entry("tool:call", 10 + 2 * HOUR_MS, tool="list_debug_sessions", request={})])
    assert named(before, "debug_session lifetime") == []
    assert {SID, OTHER} == {str(s.attributes["debug.session.id"]) for s in named(ended, "debug_session lifetime")}


def test_a_session_that_comes_back_goes_on_in_its_trace_with_a_second_lifetime() -> None:
    """Its root is made once."""
    again = call("get_output", 2 * HOUR_MS), response("get_output", 2 * HOUR_MS + 5)
    spans = mapped([created(0), *again])
    lifetimes = named(spans, "debug_session lifetime")

    assert len(named(spans, "debug_session python")) == 1
    assert [since_t0_ms(span.start_ns) for span in lifetimes] == [0, 2 * HOUR_MS]
    assert len({span.span_id for span in lifetimes}) == 2


def test_a_log_joined_in_its_middle_keeps_every_id_but_the_roots_content() -> None:
    """Replayed whole later, only the root differs."""
    items = [
        created(0),
        call("get_output", 1),
        response("get_output", 2),
        call("get_output", 9),
        response("get_output", 11),
    ]
    whole = {span.span_id: span for span in mapped(items)}
    joined = mapped(items[3:])

    assert True is joined[0].attributes["otel_bridge.partial"]
    assert [whole[span.span_id].name for span in joined[:2]] == ["debug_session python", "tools/call get_output"]


def test_an_unknown_session_gets_no_trace_but_its_calls() -> None:
    """ "Unknown Session" in the log: the session was never made."""
    (only,) = mapped([call("get_output", 1, session_name="Unknown Session"), response("get_output", 3)])

    assert (only.parent_id, only.name, since_t0_ms(only.end_ns)) == (0, "tools/call get_output", 3)


def test_a_call_without_session_and_answer_ends_after_the_idle_timeout() -> None:
    """Unanswered is no proof of failure: the server loses the tail of its log at exit."""
    mapping = LogMapping(MappingOptions(idle_timeout_ms=1000))
    mapping.take([call("list_debug_sessions", 0, None)])

    assert mapping.take([line("a", "b", 900)]) == []
    (ended,) = mapping.take([line("b", "c", 1000)])
    assert (
        ended.end_ns - ended.start_ns,
        ended.attributes["otel_bridge.outcome"],
        ended.status,
    ) == (1000, "unanswered", StatusCode.UNSET)


def test_a_snapshot_contradicts_nothing_that_is_sent_later() -> None:
    """What is unfinished at the end of a replay has ids that no later span has."""
    items: list[Entry | StateChange] = [created(0), line("created", "running", 5), call("get_output", 10)]
    mapping = LogMapping(MappingOptions())
    snapshot = mapping.take(items) + mapping.end(T0 + 20)
    final = mapped([*items, response("get_output", 400), closed(500)])

    by_id = {span.span_id: span for span in final}
    assert [span.attributes["otel_bridge.snapshot"] for span in snapshot[1:]] == [True] * 3
    assert [snapshot[0]] == [by_id[span.span_id] for span in snapshot if span.span_id in by_id]


def test_truth_of_an_outcome_is_told_by_any_of_its_entries() -> None:
    """`success` true proves nothing in 0.24.2; an error event, or success false of a result, proves failure."""
    items = [
        created(0),
        call("evaluate_expression", 1, expression="x"),
        entry("debug:evaluate", 2, event="error", error="boom", expression="x", sessionId=SID),
        entry("tool:evaluate_expression", 3, expression="x", success=False, sessionId=SID),
        response("evaluate_expression", 4),
    ]
    failed = one(mapped(items), "tools/call evaluate_expression")

    assert (
        failed.status,
        failed.status_message,
        failed.attributes["error.type"],
    ) == (StatusCode.ERROR, "boom", "tool_error")


def test_text_behind_a_known_kind_is_its_error() -> None:
    """winston glues an entry's own `message` behind the kind."""
    failing = entry("tool:error", 3, "boom", tool="get_output", sessionId=SID, sessionName="demo")
    spans = mapped([created(0), call("get_output", 1), failing])

    assert one(spans, "tools/call get_output").status_message == "boom"


def test_a_response_without_a_call_is_a_partial_instant() -> None:
    """Its call was lost; that it was answered was not."""
    (_, only, _) = mapped([created(0), response("get_output", 7)])

    assert (only.attributes["otel_bridge.partial"], only.end_ns - only.start_ns) == (True, 1000)


def test_invented_tool_names_stay_out_of_span_names() -> None:
    """Clients invent tools; the real name is an attribute."""
    strange = "rm -rf / \x1b[31m"
    spans = mapped([created(0), call(strange, 1), response(strange, 2)])

    assert strange == one(spans, "tools/call _other").attributes["gen_ai.tool.name"]


SESSIONS = st.sampled_from([SID, OTHER])
TOOLS = st.sampled_from(
    ["get_output", "step_over", "evaluate_expression", "close_debug_session", "create_debug_session"]
)
EXPRESSIONS = st.sampled_from(["a", "b", None])


@st.composite
def logs(draw: st.DrawFn) -> list[Entry | StateChange]:
    """Any entries in any order, with times that mostly grow, sometimes by more than the idle timeout."""
    items: list[Entry | StateChange] = []
    at = 0
    for _ in range(draw(st.integers(0, 30))):
        at += draw(st.sampled_from([0, 0, 1, 7, 300, -40, 2000]))
        sid = draw(SESSIONS)
        tool = draw(TOOLS)
        expression = draw(EXPRESSIONS)
        request = {} if expression is None else {"expression": expression}
        whose = None if tool == "create_debug_session" else sid
        strange = st.sampled_from((sid, 7, None))
        possible: list[Entry | StateChange] = [
            created(at, sid),
            closed(at, sid),
            call(tool, at, whose, **request),
            response(tool, at, whose, success=draw(st.booleans())),
            error(tool, at, whose),
            state(draw(st.sampled_from(["paused", "running", "stopped"])), at, sid),
            line("x", draw(st.sampled_from(["paused", "running", "stopped", "error"])), at, sid),
            entry("tool:evaluate_expression", at, expression=expression, sessionId=sid, success=True),
            entry("debug:breakpoint", at, event="verified", line=3, sessionId=sid),
            entry("debug:strange", at, sessionId=draw(strange)),
        ]
        items.append(draw(st.sampled_from(possible)))
    return items


OPTIONS = MappingOptions(idle_timeout_ms=1500)


@given(logs(), st.lists(st.integers(0, 30)))
def test_a_restart_at_any_entry_changes_nothing(items: list[Entry | StateChange], cuts: list[int]) -> None:
    """What is saved and put back at any cut gives the spans of an uninterrupted run."""
    unbroken = LogMapping(OPTIONS)
    expected = unbroken.take(items) + unbroken.end(T0 + 10_000_000)

    mapping, spans, begin = LogMapping(OPTIONS), list[Span](), 0
    sessions: dict[str, dict[str, object]] = {}
    occurrences: dict[str, tuple[str, int, int]] = {}
    for cut in sorted({min(cut, len(items)) for cut in cuts}):
        spans += mapping.take(items[begin:cut])
        begin = cut
        changes = take_changes(mapping)
        for session_id, saved in changes.sessions.items():
            if saved is None:
                sessions.pop(session_id, None)
            else:
                sessions[session_id] = saved
        occurrences.update({row[0]: row for row in changes.occurrences})
        mapping = restore(OPTIONS, changes.log, sessions, occurrences.values())
    spans += mapping.take(items[begin:]) + mapping.end(T0 + 10_000_000)

    assert sorted(expected, key=_by_id) == sorted(spans, key=_by_id)


def _by_id(span: Span) -> tuple[int, int]:
    return span.trace_id, span.span_id


@given(logs())
def test_any_log_gives_a_sound_set_of_spans(items: list[Entry | StateChange]) -> None:
    """Ids are unique, every parent is there, no child begins before its root, and each call is one span."""
    spans = mapped(items, options=OPTIONS)

    by_id = {(span.trace_id, span.span_id): span for span in spans}
    assert len(spans) == len(by_id)
    for span in spans:
        if span.parent_id:
            assert by_id[span.trace_id, span.parent_id].start_ns <= span.start_ns
            assert span.end_ns - span.start_ns >= 1000
    calls = [item for item in items if isinstance(item, Entry) and item.kind == "tool:call"]
    whole = [s for s in spans if s.name.startswith("tools/call") and "otel_bridge.partial" not in s.attributes]
    assert len(calls) == len(whole)
    placed = sum(event.name.startswith(("debug.state", "debug.breakpoint")) for span in spans for event in span.events)
    assert placed == sum(isinstance(item, Entry) and item.kind in ("debug:state", "debug:breakpoint") for item in items)
