"""Sessions of which log and frames tell together, where one of the two knows more, or sooner."""

from __future__ import annotations

import json

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.saved import take_changes
from tests.wrapper.rpc import START_NS, Conversation

SESSION = "5f1c9a53-5d0e-4a47-9a0c-3f4c1a6f0f11"
START_MS = START_NS // 1_000_000
CREATED = json.dumps({"success": True, "sessionId": SESSION})


class Logged(Conversation):
    """A conversation with a server that writes a log."""

    def __init__(self) -> None:
        super().__init__(is_debugger=True, is_logged=True)

    def log(self, kind: str, after_ms: int, **fields: object) -> None:
        """An entry, so long after the conversation began."""
        self.spans += self.mapping.take([Entry(kind, "", START_MS + after_ms, fields)])

    def create(self) -> None:
        """A session, as client, server and log tell of it."""
        self.ask(1, "create_debug_session", {"language": "python"})
        self.log("tool:call", 40, tool="create_debug_session", request={"language": "python"})
        self.log("session:created", 50, sessionId=SESSION, sessionName="s", language="python")
        self.reply(1, CREATED)
        self.log("tool:response", 60, tool="create_debug_session", success=True)


def test_the_root_stands_where_the_creates_frame_passed() -> None:
    """And not where the server, which may be busy, logged it."""
    talk = Logged()
    talk.create()

    root, create = talk.spans
    assert (root.name, create.name) == ("debug_session python", "tools/call create_debug_session")
    assert root.start_ns == create.start_ns == START_NS


def test_a_session_whose_beginning_the_log_has_lost_is_whole() -> None:
    """Its create's answer told of it before."""
    talk = Logged()
    talk.ask(1, "create_debug_session", {"language": "python"})
    talk.reply(1, CREATED)
    talk.log("tool:call", 70, tool="step_over", sessionId=SESSION, sessionName="s", request={"sessionId": SESSION})

    (root,) = talk.spans
    assert "otel_bridge.partial" not in root.attributes
    assert root.start_ns == START_NS


def test_a_session_that_was_silent_too_long_comes_back() -> None:
    """As in any log; the call that was in flight all the time is one span, and holds no lifetime up."""
    talk = Logged()
    talk.create()
    talk.ask(2, "continue_execution", {"sessionId": SESSION})
    request = {"sessionId": SESSION}
    talk.log("tool:call", 70, tool="continue_execution", sessionId=SESSION, sessionName="s", request=request)
    talk.log("debug:state", 4_000_000, event="paused", sessionId=SESSION, sessionName="s")
    talk.reply(2, json.dumps({"success": True}))
    talk.wait(1)

    spans = talk.end()
    assert [span.name for span in spans].count("debug_session lifetime") == 2
    (call,) = [span for span in spans if span.name == "tools/call continue_execution"]
    assert "otel_bridge.outcome" not in call.attributes


def test_a_session_that_only_frames_changed_is_saved() -> None:
    """What its calls counted must not be forgotten by whoever goes on with it."""
    talk = Logged()
    talk.create()
    take_changes(talk.mapping)
    talk.ask(2, "no_such_tool", {"sessionId": SESSION})
    talk.fail(2, -32601, "Unknown tool")
    talk.wait(1)

    saved = take_changes(talk.mapping).sessions[SESSION]
    assert saved is not None
    assert saved["totals"] == [2, 1, 0, 0, 0, 0]


def test_a_call_without_arguments_is_known_in_the_log() -> None:
    """The server logs an empty object for what was left out; that other calls may be missing changes nothing."""
    talk = Logged()
    talk.ask(1, "list_debug_sessions")
    talk.log("tool:call", 1, tool="list_debug_sessions", request={})
    (logged,) = talk.mapping.calls.tracked

    assert logged.frame is not None
    assert logged.digest == logged.frame.digest
