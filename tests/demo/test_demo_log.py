"""The recorded session that the package ships."""

from __future__ import annotations

import json
import re

from otel_bridge.demo import demo_log


def test_is_a_whole_session_with_something_to_see() -> None:
    """It begins before the session and ends with its close; every call is answered, and two of them fail."""
    entries = [json.loads(line) for line in demo_log().decode().splitlines()]
    kinds = [entry["message"] for entry in entries]

    answered = kinds.count("tool:response") + kinds.count("tool:error")
    assert kinds.count("tool:call") == answered == 26
    assert (kinds.count("session:created"), kinds.count("session:closed")) == (1, 1)
    assert kinds.count("tool:error") == 1
    assert [entry["success"] for entry in entries if entry["message"] == "tool:evaluate_expression"].count(False) == 1
    assert {entry["reason"] for entry in entries if entry.get("event") == "paused"} == {
        "breakpoint",
        "step",
        "exception",
    }


def test_is_small_and_neutral() -> None:
    """It adds little to the package, names no place but the neutral one, and keeps lines that must be skipped."""
    log = demo_log()

    assert log.endswith(b"\n")
    assert len(log) < 60_000
    assert set(re.findall(rb"(?<![\w.<@/-])/[\w.@-]+", log)) == {b"/workspace"}
    assert b"ProxyManager STDERR" in log
