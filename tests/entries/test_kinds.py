"""Which messages are structured."""

from __future__ import annotations

import pytest

from otel_bridge.entries.entry import Entry
from otel_bridge.entries.kinds import KNOWN_KINDS, STRUCTURED_LINE, split_kind, split_state_change
from otel_bridge.entries.reader import EntryReader
from tests.entries.lines import SID
from tests.recordings import RECORDINGS


@pytest.mark.parametrize("kind", sorted(KNOWN_KINDS))
def test_known_kind(kind: str) -> None:
    """A known kind is a kind, alone or with text glued behind it by a space."""

    assert split_kind(kind) == (kind, "")
    assert split_kind(f"{kind} boom: it\nbroke ") == (kind, "boom: it\nbroke ")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("tool:call:started", ("tool:call:started", "")),
        ("debug:memory", ("debug:memory", "")),
        ("debug:memory 12 MB", ("debug:memory", "12 MB")),
        ("session:attach-mode\ttwo  words", ("session:attach-mode", "two  words")),
        ("tool:日本", ("tool:日本", "")),
        ("tool:error ", ("tool:error", "")),
        ("tool:", None),
        ("session: closed by the client", None),
        ("Tool:call", None),
        (" tool:call", None),
        ("[SessionManager] tool:call", None),
        ("toolbox:call", None),
        ("", None),
    ],
)
def test_kind_is_the_whole_first_word(message: str, expected: tuple[str, str] | None) -> None:
    """A kind nobody has seen yet is one too; prose that only begins like one is not."""

    assert split_kind(message) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"[SM _updateSessionState {SID}] State change: created -> initializing", (SID, "created", "initializing")),
        (f"[SM _updateSessionState {SID}] State change: created -> initializing ", None),
        (f"[SM _updateSessionState {SID}] State change: created -> a b", None),
        (f"x [SM _updateSessionState {SID}] State change: created -> initializing", None),
        ("[SM _updateSessionState ] State change: created -> initializing", None),
        (f"[SM _updateSessionState {SID}] State change: created -> initializing tool:call", None),
    ],
)
def test_state_line_matches_as_a_whole(message: str, expected: tuple[str, str, str] | None) -> None:
    """Only a message that is a state line from its first to its last character is one."""

    assert split_state_change(message) == expected


@pytest.mark.parametrize(
    "line",
    [
        rb'{"message":"tool:call"',
        rb'{"message": "debug:state"',
        b'{"message"\t:  "session:created boom"',
        rb'{"message":"[SM _updateSessionState x] State change: a -> b"',
    ],
)
def test_bytes_test_passes_structured_lines(line: bytes) -> None:
    """White space round the colon does not hide an entry."""

    assert STRUCTURED_LINE.search(line)


@pytest.mark.parametrize(
    "line",
    [
        rb'{"message":"[ProxyManager] Sending: {\"message\":\"tool:call\"}"}',
        rb'{"message":"attempting tool:call"}',
        rb'{"messages":"tool:call"}',
        rb'{"text":"tool:call"}',
        b"tool:call",
        b"",
    ],
)
def test_bytes_test_stops_other_lines(line: bytes) -> None:
    """A structured message quoted inside a string, or under another key, is not looked at any further."""

    assert not STRUCTURED_LINE.search(line)


def test_every_kind_of_the_real_logs_is_known() -> None:
    """The real server's kinds are all in the list, so that an unknown one is news."""
    items = [item for recording in RECORDINGS for item in EntryReader(recording.name).feed(recording.log)]
    kinds = {item.kind for item in items if isinstance(item, Entry)}

    assert kinds <= KNOWN_KINDS
    assert len(kinds) == 16
