"""Tool calls from their frames alone: pairing, outcome, attributes, the caller's trace."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import SpanFlags

from otel_bridge.entries.frame import Direction
from otel_bridge.export.encode import SpanEncoder
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.frame_mapping import CANCEL_DELAY_S, LOG_DELAY_S
from otel_bridge.sessions.frame_reader import MAX_IN_FLIGHT
from otel_bridge.sessions.ids import root_span_id, trace_id_of_session
from otel_bridge.sessions.span import SpanKind, SpanLink, StatusCode
from tests.wrapper.rpc import START_NS, STEP_NS, Conversation

SESSION = "5f1c9a53-5d0e-4a47-9a0c-3f4c1a6f0f11"
LOCAL = SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
REMOTE = LOCAL | SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
TRACE, PARENT = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
TRACEPARENT = f"00-{TRACE:032x}-{PARENT:016x}-01"


def test_a_call_is_a_span_with_the_conventions_attributes() -> None:
    """Those of MCP servers, and who the two are; in a trace of its own, sent as soon as it is answered."""
    talk = Conversation(Capture.FULL)
    info = {"protocolVersion": "2025-03-26", "clientInfo": {"name": "agent", "version": "3.1"}}
    talk.client({"id": 0, "method": "initialize", "params": info})
    server = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "tiny", "version": "1.2"}}
    talk.server({"id": 0, "result": server})
    talk.ask(7, "weather", {"town": "Graz", "file": "no code"})
    talk.reply(7, '{"degrees": 21}')

    (span,) = talk.spans
    assert (span.name, span.kind, span.parent_id) == ("tools/call weather", SpanKind.SERVER, 0)
    assert (span.start_ns, span.end_ns) == (START_NS + 2 * STEP_NS, START_NS + 3 * STEP_NS)
    assert (span.status, span.links) == (StatusCode.UNSET, ())
    assert span.attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.arguments": '{"town":"Graz","file":"no code"}',
        "gen_ai.tool.call.result": '{"degrees":21}',
        "network.transport": "pipe",
        "jsonrpc.request.id": "7",
        "mcp.protocol.version": "2025-06-18",
        "mcp.client.name": "agent",
        "mcp.client.version": "3.1",
        "mcp.server.name": "tiny",
        "mcp.server.version": "1.2",
    }


def test_each_request_can_say_who_speaks() -> None:
    """As the stateless protocol does it, without an initialize."""
    talk = Conversation()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "4"},
    }
    talk.ask(1, "x", _meta=meta)
    talk.reply(1, _meta={"io.modelcontextprotocol/serverInfo": {"name": "stateless"}})

    (span,) = talk.spans
    assert span.attributes["mcp.protocol.version"] == "2026-07-28"
    assert (span.attributes["mcp.client.name"], span.attributes["mcp.client.version"]) == ("agent", "4")
    assert talk.reader.server_name == "stateless"


@pytest.mark.parametrize("ids", [(1, "1"), ("a", "b"), (1.5, 2), (10**30, 10**30 + 1), ("", " ")])
def test_ids_are_compared_by_type_and_value(ids: tuple[object, object]) -> None:
    """Answers in the other order find their calls."""
    talk = Conversation()
    talk.ask(ids[0], "first")
    talk.ask(ids[1], "second")
    talk.reply(ids[1])
    talk.reply(ids[0])

    assert [span.name for span in talk.spans] == ["tools/call second", "tools/call first"]
    assert [span.attributes["jsonrpc.request.id"] for span in talk.spans] == [str(ids[1]), str(ids[0])]


def test_batches() -> None:
    """Every call in one is a span; answers may come in a batch of another order."""
    talk = Conversation()
    calls = [{"id": n, "method": "tools/call", "params": {"name": f"tool{n}"}} for n in range(3)]
    talk.client([*calls, {"method": "notifications/progress"}])
    talk.server([{"id": 2, "result": {}}, {"id": 0, "result": {}}])
    talk.server({"id": 1, "result": {}})

    assert {span.name for span in talk.spans[:2]} == {"tools/call tool0", "tools/call tool2"}
    assert talk.spans[2].name == "tools/call tool1"
    assert len({span.span_id for span in talk.spans}) == 3


def test_only_answers_of_calls_are_theirs() -> None:
    """Other requests, the server's own requests with the same ids, and notifications are no calls."""
    talk = Conversation()
    talk.client({"id": 1, "method": "tools/list"})
    talk.ask(2, "x")
    talk.server({"id": 2, "method": "sampling/createMessage", "params": {}})
    talk.client({"id": 2, "result": {"model": "m"}})
    talk.server({"id": 1, "result": {"tools": []}})
    talk.client({"method": "tools/call", "params": {"name": "a notification"}})
    talk.client({"id": None, "method": "tools/call", "params": {"name": "a null id"}})

    assert talk.spans == []
    talk.reply(2)
    assert [span.name for span in talk.end()] == ["tools/call x"]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"3", b'"text"', b"[1]", b"[" * 5000, b"null", b'{"id":NaN}'])
@pytest.mark.parametrize("direction", Direction)
def test_a_frame_that_is_no_message_is_counted(data: bytes, direction: Direction) -> None:
    """And nothing else comes of it."""
    talk = Conversation()
    talk.ask(1, "x")
    talk.frame(direction, data)
    talk.reply(1)

    assert talk.reader.unreadable == 1
    assert len(talk.spans) == 1


@pytest.mark.parametrize(
    "params", [None, [], "x", {}, {"name": 5}, {"name": "x", "arguments": [1]}, {"name": "x", "_meta": 3}]
)
def test_any_params(params: object) -> None:
    """A client can send what it wants: it is a call nevertheless."""
    talk = Conversation()
    talk.client({"id": 1, "method": "tools/call", "params": params})
    talk.server({"id": 1, "result": params})

    (span,) = talk.spans
    assert span.name in ("tools/call _other", "tools/call x")


def test_an_error_of_the_protocol() -> None:
    """Its code is the type and the status code, its message the status' one."""
    talk = Conversation()
    talk.ask(1, "x")
    talk.fail(1, -32602, "Unknown argument token=abcdef123456")

    (span,) = talk.spans
    assert (span.status, span.status_message) == (StatusCode.ERROR, "Unknown argument token=<redacted>")
    assert span.attributes["error.type"] == "-32602"
    assert span.attributes["rpc.response.status_code"] == "-32602"


def test_an_error_of_the_tool() -> None:
    """`isError` with the text of its content."""
    talk = Conversation()
    talk.ask(1, "x")
    talk.server(
        {
            "id": 1,
            "result": {"isError": True, "content": [{"type": "text", "text": "it"}, {"type": "text", "text": "broke"}]},
        }
    )

    (span,) = talk.spans
    assert (span.status, span.status_message) == (StatusCode.ERROR, "it\nbroke")
    assert span.attributes["error.type"] == "tool_error"


@pytest.mark.parametrize("is_debugger", [True, False])
def test_success_false_is_the_debuggers_word(is_debugger: bool) -> None:
    """mcp-debugger says by it that a tool failed; of another server it may mean anything."""
    talk = Conversation(is_debugger=is_debugger)
    talk.ask(1, "x")
    talk.reply(1, json.dumps({"success": False, "error": "not paused"}))

    (span,) = talk.spans
    assert (span.status is StatusCode.ERROR) == is_debugger
    assert span.status_message == ("not paused" if is_debugger else "")


def test_metadata_holds_no_arguments_and_no_words() -> None:
    """Only that it failed, and how."""
    talk = Conversation(Capture.METADATA)
    talk.ask(1, "x", {"password": "hunter2", "town": "Graz"})
    talk.reply(1, "it broke in Graz", isError=True)

    (span,) = talk.spans
    assert "Graz" not in repr(span)
    assert span.attributes["error.type"] == "tool_error"


def test_results_are_sent_at_full_only_and_redacted() -> None:
    """Structured content first, else what the text holds as JSON."""
    talk = Conversation(Capture.FULL)
    talk.ask(1, "x", {"password": "hunter2"})
    talk.reply(1, "as text", structuredContent={"token": "abc", "n": 1})
    talk.ask(2, "x")
    talk.reply(2, "plain text")
    talk.ask(3, "x")
    talk.server({"id": 3, "result": {"content": [{"type": "image", "data": "AAAA"}]}})
    sparing = Conversation(Capture.ARGUMENTS)
    sparing.ask(1, "x")
    sparing.reply(1, "a result")

    first, second, third = talk.spans
    assert first.attributes["gen_ai.tool.call.arguments"] == '{"password":"<redacted>"}'
    assert first.attributes["gen_ai.tool.call.result"] == '{"token":"<redacted>","n":1}'
    assert second.attributes["gen_ai.tool.call.result"] == '"plain text"'
    assert third.attributes["gen_ai.tool.call.result"] == '[{"type":"image","data":"AAAA"}]'
    assert "gen_ai.tool.call.result" not in sparing.spans[0].attributes


def test_a_result_is_redacted_by_what_was_asked_for() -> None:
    """Only the arguments tell that the value is a secret."""
    talk = Conversation(Capture.FULL)
    talk.ask(1, "x", {"expression": "password"})
    talk.reply(1, '{"success": true, "result": "\'hunter2\'"}')
    talk.ask(2, "x", {"name": "DB_PASSWORD"})
    talk.reply(2, '{"value": "hunter2"}')

    assert [span.attributes["gen_ai.tool.call.result"] for span in talk.spans] == [
        '{"success":true,"result":"<redacted>"}',
        '{"value":"<redacted>"}',
    ]


def test_a_call_without_answer_ends_with_the_server() -> None:
    """No proof of failure."""
    talk = Conversation()
    talk.ask(1, "x")

    (span,) = talk.end()
    assert span.attributes["otel_bridge.outcome"] == "unanswered"
    assert (span.status, span.end_ns - span.start_ns) == (StatusCode.UNSET, 1000)


def test_a_cancelled_call_that_is_answered_after_all() -> None:
    """Has the answer's time and outcome, and says that nobody waited for it."""
    talk = Conversation()
    talk.ask(1, "x")
    talk.client({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "timeout"}})
    talk.reply(1, "late", isError=True)

    (span,) = talk.spans
    assert span.attributes["otel_bridge.outcome"] == "cancelled"
    assert (span.status, span.end_ns) == (StatusCode.ERROR, START_NS + 2 * STEP_NS)


def test_a_cancelled_call_that_is_not_answered() -> None:
    """Ends when it was given up, some seconds later; an answer after that changes nothing."""
    talk = Conversation()
    talk.ask(1, "x")
    talk.client({"method": "notifications/cancelled", "params": {"requestId": 1}})
    talk.wait(CANCEL_DELAY_S - 1)
    assert talk.spans == []
    talk.wait(1)
    talk.reply(1)

    (span,) = talk.end()
    assert span.attributes["otel_bridge.outcome"] == "cancelled"
    assert (span.status, span.end_ns) == (StatusCode.UNSET, START_NS + STEP_NS)


@pytest.mark.parametrize("id_first", [True, False])
def test_an_answer_over_the_limit_ends_its_call(id_first: bool) -> None:
    """Its id stands at one of its ends; what is inside of it is not looked at."""
    talk = Conversation(Capture.FULL)
    talk.ask('a"b', "other")
    talk.ask(5, "x")
    result = {"result": {"content": "z" * 3000, "inner": {"id": 99}}}
    message = {"jsonrpc": "2.0", "id": 5, **result} if id_first else {**result, "jsonrpc": "2.0", "id": 5}
    talk.frame(Direction.TO_CLIENT, json.dumps(message).encode(), max_bytes=1000)

    (span,) = talk.spans
    assert span.name == "tools/call x"
    assert span.attributes["otel_bridge.outcome"] == "too_long"
    assert span.attributes["otel_bridge.answer_bytes"] == len(json.dumps(message))


def test_a_long_frame_of_the_client_answers_nothing() -> None:
    """Its id is that of an answer to the server, or of a call that begins."""
    talk = Conversation()
    talk.ask(5, "x")
    message = {"jsonrpc": "2.0", "id": 5, "result": {"content": "z" * 3000}}
    talk.frame(Direction.TO_SERVER, json.dumps(message).encode(), max_bytes=1000)

    assert talk.spans == []


def test_no_id_is_guessed_from_the_middle_of_a_long_frame() -> None:
    """An id that is not the message's own ends no call."""
    talk = Conversation()
    talk.ask(5, "x")
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "z" * 3000, "x": {"id": 5}}}
    talk.frame(Direction.TO_CLIENT, json.dumps(message).encode(), max_bytes=1000)

    assert talk.spans == []


def test_too_many_calls_in_flight() -> None:
    """The oldest is given up, so that a server that never answers costs no memory without end."""
    talk = Conversation()
    for number in range(MAX_IN_FLIGHT + 2):
        talk.ask(number, "x")

    assert [span.attributes["jsonrpc.request.id"] for span in talk.spans] == ["0", "1"]
    assert {span.attributes["otel_bridge.outcome"] for span in talk.spans} == {"unanswered"}


def test_the_callers_span_is_linked() -> None:
    """By default the call stays in its own trace."""
    talk = Conversation()
    talk.ask(1, "x", _meta={"traceparent": TRACEPARENT, "tracestate": "a=1,b=2"})
    talk.reply(1)

    (span,) = talk.spans
    assert span.links == (SpanLink(TRACE, PARENT, "a=1,b=2", is_remote=True),)
    assert (span.parent_id, span.trace_state) == (0, "")
    assert span.trace_id != TRACE


def test_a_call_can_join_its_caller() -> None:
    """Then it is a child of the agent's span."""
    talk = Conversation(join_caller=True)
    talk.ask(1, "x", _meta={"traceparent": TRACEPARENT, "tracestate": "a=1"})
    talk.reply(1)
    talk.ask(2, "y")
    talk.reply(2)

    joined, alone = talk.spans
    assert (joined.trace_id, joined.parent_id, joined.trace_state, joined.links) == (TRACE, PARENT, "a=1", ())
    assert (alone.parent_id, alone.trace_id == TRACE) == (0, False)


def test_a_call_of_a_session_that_joins_its_caller_is_linked_to_the_sessions_root() -> None:
    """So that one finds the session from the agent's trace."""
    talk = Conversation(is_debugger=True, join_caller=True)
    talk.ask(1, "create_debug_session", {"language": "python"})
    talk.reply(1, json.dumps({"success": True, "sessionId": SESSION}))
    talk.ask(2, "step_over", {"sessionId": SESSION}, _meta={"traceparent": TRACEPARENT})
    talk.reply(2, json.dumps({"success": True}))

    step = talk.spans[-1]
    session = trace_id_of_session(SESSION)
    assert (step.trace_id, step.parent_id) == (TRACE, PARENT)
    assert step.links == (SpanLink(session, root_span_id(session)),)
    assert step.attributes["debug.session.id"] == SESSION


@pytest.mark.parametrize(
    ("join_caller", "expected"), [(False, (LOCAL, [REMOTE])), (True, (REMOTE, [LOCAL]))], ids=["linked", "joined"]
)
def test_a_backend_is_told_which_spans_are_another_process(join_caller: bool, expected: tuple[int, list[int]]) -> None:
    """By the flags of OTLP: the agent's span is, the session's root is not."""
    talk = Conversation(is_debugger=True, join_caller=join_caller)
    talk.ask(1, "create_debug_session", {"language": "python"})
    talk.reply(1, json.dumps({"success": True, "sessionId": SESSION}))
    talk.ask(2, "step_over", {"sessionId": SESSION}, _meta={"traceparent": TRACEPARENT})
    talk.reply(2, json.dumps({"success": True}))

    message = ProtoSpan.FromString(SpanEncoder().encode(talk.spans[-1]))

    assert (message.flags, [link.flags for link in message.links]) == expected


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        5,
        TRACEPARENT.upper(),
        TRACEPARENT[:-1],
        f"{TRACEPARENT}-more",
        f"ff-{TRACE:032x}-{PARENT:016x}-01",
        f"00-{0:032x}-{PARENT:016x}-01",
        f"00-{TRACE:032x}-{0:016x}-01",
    ],
)
def test_a_context_that_is_not_well_formed_is_none(traceparent: object) -> None:
    """The call is a call like any other."""
    talk = Conversation(join_caller=True)
    talk.ask(1, "x", _meta={"traceparent": traceparent})
    talk.reply(1)

    (span,) = talk.spans
    assert (span.parent_id, span.links) == (0, ())


def test_a_later_version_of_the_context_may_hold_more() -> None:
    """As its specification says."""
    talk = Conversation()
    talk.ask(1, "x", _meta={"traceparent": f"01{TRACEPARENT[2:]}-more", "tracestate": "x" * 600})
    talk.reply(1)

    assert talk.spans[0].links == (SpanLink(TRACE, PARENT, is_remote=True),)


def test_a_session_that_no_log_tells_of() -> None:
    """Is made of its calls: root and lifetime, closed by the close."""
    talk = Conversation(is_debugger=True, is_logged=True)
    talk.ask(1, "create_debug_session", {"language": "python", "name": "mine", "executablePath": "/usr/bin/python3"})
    talk.reply(1, json.dumps({"success": True, "sessionId": SESSION}))
    assert talk.spans == []
    talk.wait(LOG_DELAY_S)
    talk.ask(2, "step_over", {"sessionId": SESSION})
    talk.reply(2, json.dumps({"success": False, "error": "not paused"}))
    talk.ask(3, "close_debug_session", {"sessionId": SESSION})
    talk.reply(3, json.dumps({"success": True}))
    talk.wait(LOG_DELAY_S)

    root, create, step, close, lifetime = talk.spans
    assert [span.name for span in talk.spans] == [
        "debug_session python",
        "tools/call create_debug_session",
        "tools/call step_over",
        "tools/call close_debug_session",
        "debug_session lifetime",
    ]
    assert {span.trace_id for span in talk.spans} == {trace_id_of_session(SESSION)}
    assert {span.parent_id for span in (create, step, close, lifetime)} == {root.span_id}
    assert root.start_ns == START_NS
    assert root.attributes["process.executable.path"] == "/usr/bin/python3"
    assert {span.attributes["debug.session.name"] for span in talk.spans} == {"mine"}
    assert lifetime.attributes["debug.session.end_reason"] == "closed"
    assert (lifetime.attributes["debug.session.calls"], lifetime.attributes["debug.session.failed"]) == (3, 1)


def test_a_session_that_is_not_closed_ends_with_its_server() -> None:
    """Its open call too."""
    talk = Conversation(is_debugger=True)
    talk.ask(1, "create_debug_session", {"language": "python"})
    talk.reply(1, json.dumps({"success": True, "sessionId": SESSION}))
    talk.ask(2, "continue_execution", {"sessionId": SESSION})

    spans = {span.name: span for span in talk.end()}
    assert spans["tools/call continue_execution"].attributes["otel_bridge.outcome"] == "unanswered"
    assert spans["debug_session lifetime"].attributes["debug.session.end_reason"] == "not_closed"
    assert spans["debug_session lifetime"].attributes["debug.session.unanswered"] == 1


def test_a_call_of_a_session_that_never_was() -> None:
    """A trace of one span that names the session asked for."""
    talk = Conversation(is_debugger=True)
    talk.ask(1, "step_over", {"sessionId": SESSION})
    talk.fail(1, -32602, "Session not found")

    (span,) = talk.spans
    assert (span.parent_id, span.attributes["debug.session.id"]) == (0, SESSION)
    assert span.trace_id != trace_id_of_session(SESSION)


def test_ids_come_from_the_run_the_direction_and_the_number() -> None:
    """Two runs with the same frames give other ids; the same run gives the same."""
    ids = []
    for _ in range(2):
        talk = Conversation()
        talk.ask(1, "x")
        talk.reply(1)
        ids.append((talk.spans[0].trace_id, talk.spans[0].span_id))
    other = Conversation()
    other.reader = type(other.reader)(b"f" * 16, other.mapping.options, is_debugger=False)
    other.ask(1, "x")
    other.reply(1)

    assert ids[0] == ids[1]
    assert ids[0] != (other.spans[0].trace_id, other.spans[0].span_id)
