"""The states of the debugged program, and where state and breakpoint entries go."""

from __future__ import annotations

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from tests.sessions.entries import (
    SID,
    call,
    closed,
    created,
    entry,
    line,
    mapped,
    named,
    one,
    response,
    since_t0_ms,
    state,
)


def states(spans: list[Span]) -> list[tuple[str, float, float]]:
    """Name, start and end of the state spans, in ms."""
    return [
        (span.name.removeprefix("debuggee "), since_t0_ms(span.start_ns), since_t0_ms(span.end_ns))
        for span in spans
        if span.name.startswith("debuggee ")
    ]


def events(spans: list[Span]) -> dict[str, list[str]]:
    """Names of the events of each span that has any."""
    return {span.name: [event.name for event in span.events] for span in spans if span.events}


def test_state_spans_follow_the_state_lines() -> None:
    """Each state lasts until the next; created and stopped are no states of a program."""
    spans = mapped(
        [
            created(0),
            line("created", "initializing", 10),
            line("initializing", "running", 500),
            line("running", "paused", 560),
            line("paused", "stopped", 900),
            closed(1000),
        ]
    )

    assert states(spans) == [("initializing", 10, 500), ("running", 500, 560), ("paused", 560, 900)]


def test_a_session_without_state_lines_follows_its_state_entries() -> None:
    """The specification's own form of a log has no state lines."""
    spans = mapped([created(0), state("running", 10), state("paused", 50, reason="breakpoint"), closed(90)])

    assert states(spans) == [("running", 10, 50), ("paused", 50, 90)]
    assert one(spans, "debuggee paused").attributes["debug.state.reason"] == "breakpoint"


def test_a_state_entry_describes_the_state_that_its_line_begins() -> None:
    """In 0.24.2 the entry stands one line before the state line."""
    spans = mapped(
        [
            created(0),
            line("created", "running", 5),
            state("paused", 10, reason="step", threadId=7, location={"file": "/w/a.py", "line": 3, "function": "f"}),
            line("running", "paused", 11),
            closed(20),
        ]
    )
    paused = one(spans, "debuggee paused")

    told = {name: paused.attributes[name] for name in paused.attributes if not name.startswith("debug.session")}
    assert told == {
        "debug.state.reason": "step",
        "thread.id": 7,
        "code.file.path": "/w/a.py",
        "code.line.number": 3,
        "code.function.name": "f",
    }
    assert events(spans) == {"debuggee paused": ["debug.state.paused"]}


def test_a_state_entry_that_no_line_follows_stands_alone() -> None:
    """`running` at the end of a step is no state of its own: the state lines already told."""
    spans = mapped(
        [
            created(0),
            line("created", "paused", 5),
            call("step_over", 10),
            line("paused", "running", 11),
            state("running", 90),
            state("paused", 91, reason="step"),
            line("running", "paused", 92),
            response("step_over", 95),
            closed(100),
        ]
    )

    assert states(spans) == [("paused", 5, 11), ("running", 11, 92), ("paused", 92, 100)]
    assert events(spans) == {"tools/call step_over": ["debug.state.running", "debug.state.paused"]}


def test_an_event_goes_to_the_call_that_causes_such_entries() -> None:
    """Of several calls in flight, the one that sets this very breakpoint."""
    spans = mapped(
        [
            created(0),
            call("set_breakpoint", 1, file="/w/a.py", line=3),
            call("set_breakpoint", 2, file="/w/b.py", line=4),
            call("get_output", 3),
            entry("debug:breakpoint", 4, event="set", file="/w/a.py", line=3, sessionId=SID, sessionName="demo"),
            response("get_output", 5),
            response("set_breakpoint", 6),
            response("set_breakpoint", 7),
        ]
    )
    with_events = [span for span in spans if span.events]

    assert [(s.name, s.attributes["code.line.number"]) for s in with_events] == [("tools/call set_breakpoint", 3)]


def test_an_event_without_a_call_goes_to_the_open_state_and_else_to_the_lifetime() -> None:
    """Nothing structured is dropped: some span carries it."""
    hit = entry("debug:breakpoint", 50, event="hit", sessionId=SID, sessionName="demo")
    spans = mapped(
        [
            created(0),
            entry("session:note", 5, sessionId=SID, sessionName="demo"),
            line("created", "running", 10),
            hit,
            closed(90),
        ]
    )

    assert events(spans) == {
        "debuggee running": ["debug.breakpoint.hit"],
        "debug_session lifetime": ["session.note"],
    }


def test_an_event_after_the_end_gets_a_span_of_its_own() -> None:
    """The lifetime is sent by then, and never changes."""
    late = entry("debug:breakpoint", 70, event="changed", sessionId=SID, sessionName="demo")
    spans = mapped([created(0), closed(50), late])

    assert events(spans) == {"debug_session event": ["debug.breakpoint.changed"]}


def test_events_beyond_the_limit_go_to_further_spans() -> None:
    """No event is lost to the limit of a span, and none is held back for ever."""
    many = [
        entry("debug:output", 10 + n, category="stdout", output=str(n), sessionId=SID, sessionName="demo")
        for n in range(11)
    ]
    spans = mapped([created(0), *many, closed(90)], options=MappingOptions(max_events=4))

    sizes = sorted(len(span.events) for span in spans if span.events)
    assert sizes == [3, 4, 4]
    assert len({event.time_ns for span in spans for event in span.events}) == 11


def test_what_lies_before_the_root_is_raised_to_it() -> None:
    """Time in one file steps back; a child that begins before its root would be moved by Jaeger."""
    spans = mapped([created(100), call("get_output", 60), response("get_output", 130), closed(140)])

    assert (
        since_t0_ms(one(spans, "tools/call get_output").start_ns),
        since_t0_ms(one(spans, "tools/call get_output").end_ns),
    ) == (100, 130)


def test_only_the_root_is_shorter_than_a_microsecond() -> None:
    """Jaeger warns when a span ends where it starts, and takes a child that is longer than the root for no skew."""
    spans = mapped(
        [
            created(0),
            call("get_output", 1),
            response("get_output", 1),
            line("created", "running", 2),
            line("running", "paused", 2),
            closed(2),
        ]
    )

    assert {1} == {span.end_ns - span.start_ns for span in named(spans, "debug_session python")}
    assert all(span.end_ns - span.start_ns >= 1000 for span in spans if span.parent_id)
