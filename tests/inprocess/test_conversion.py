"""Lines in, spans out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_bridge import Capture, Flaw, SettingError, convert
from otel_bridge.demo import demo_log
from otel_bridge.entries.times import LATEST_MS
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.replay import mapped
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.testing import session_entries
from tests.inprocess.programs import lines_of
from tests.recordings import RECORDINGS, Recording

ENTRIES = session_entries()
END_MS = 1_796_071_984_651


def test_lines_may_have_any_form() -> None:
    """An open file, bytes, text, or objects: the same spans."""
    as_bytes = lines_of(ENTRIES)
    expected = list(convert(as_bytes))

    assert len(expected) == 8
    assert expected == list(convert([b"\0\0" + line + b"\r\n" for line in as_bytes]))
    assert expected == list(convert([line.decode() for line in as_bytes]))
    assert expected == list(convert(ENTRIES))
    assert expected == list(convert([{"message": "prose"}, "", b"\0\0", *as_bytes]))


def test_an_open_file_can_be_given(tmp_path: Path) -> None:
    """Its lines, in bytes or as text."""
    log = tmp_path / "server.log"
    log.write_bytes(demo_log())
    with log.open("rb") as in_bytes, log.open(encoding="utf-8", newline="\n") as as_text:
        assert list(convert(in_bytes)) == list(convert(as_text))


def test_a_span_comes_as_soon_as_a_line_makes_it_final() -> None:
    """Nothing waits for the end of the lines."""
    taken: list[int] = []

    def lines() -> object:
        for number, line in enumerate(lines_of(ENTRIES)):
            taken.append(number)
            yield line

    first = next(convert(lines()))  # type: ignore[arg-type]

    assert first.name == "debug_session python"
    assert taken == [0, 1]


def test_the_end_is_an_argument() -> None:
    """What may still live at `end_ms` is a snapshot; without it everything ends."""
    lines = lines_of(session_entries(is_closed=False))
    living = list(convert(lines, end_ms=END_MS))
    over = list(convert(lines, end_ms=END_MS + 3_600_000))

    assert [span.name for span in living if span.attributes.get("otel_bridge.snapshot")] == [
        "debuggee paused",
        "debug_session lifetime",
    ]
    assert over == list(convert(lines))
    assert over[-1].attributes["debug.session.end_reason"] == "not_closed"


def test_malformed_lines_are_told_with_their_number() -> None:
    """They are passed over, not passed by."""
    told: list[tuple[int, Flaw]] = []
    lines: list[bytes | str] = [
        b'{"message": "tool:call"}',
        b"prose",
        b'{"message": "tool:call",',
        '{"message": "debug:x", "timestamp": 1}',
    ]

    assert list(convert(lines, on_malformed=lambda number, flaw: told.append((number, flaw)))) == []
    assert told == [(1, Flaw.NO_TIME), (3, Flaw.NOT_JSON), (4, Flaw.NO_TIME)]


def test_a_line_over_the_limit_is_malformed() -> None:
    """As it is in a file that is tailed."""
    told: list[Flaw] = []
    line = json.dumps({"message": "debug:output", "timestamp": END_MS, "output": "x" * (1 << 20)})

    assert list(convert([line], on_malformed=lambda number, flaw: told.append(flaw))) == []
    assert told == [Flaw.TOO_LONG]


def test_options_are_checked_at_once() -> None:
    """Before the first line is asked for."""
    with pytest.raises(SettingError, match="capture: `all` is not known"):
        convert([], capture="all")
    with pytest.raises(TypeError, match="give the lines one by one"):
        convert(b"\n".join(lines_of(ENTRIES)))  # type: ignore[arg-type]


def test_the_capture_level_is_heeded() -> None:
    """By name or by value."""
    ((metadata, _), (full, _)) = (
        [str(span) for span in convert(ENTRIES, capture=level) if "evaluate" in span.name] + [""]
        for level in ("metadata", Capture.FULL)
    )

    assert "n * 2" not in metadata
    assert "n * 2" in full


@pytest.mark.parametrize("recorded", RECORDINGS, ids=lambda one: one.name)
def test_the_spans_are_those_of_a_replay(recorded: Recording, tmp_path: Path) -> None:
    """Of each recorded log, long after it was written."""
    paths = map(str, recorded.unpack(tmp_path))
    stage = MappingStage(MappingOptions(), lambda malformed: None)
    portions = mapped(paths, stage, LATEST_MS, lambda path, read, size: None, lambda path: None)

    assert [span for portion in portions for span in portion] == list(convert(recorded.lines))
