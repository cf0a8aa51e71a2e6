"""An entry becomes the same spans whichever way it comes in."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge import BridgeHandler, Span, convert
from otel_bridge.entries.kinds import KNOWN_KINDS
from otel_bridge.sessions.capture import Capture
from otel_bridge.testing import CapturingExporter, Receiver, session_entries
from tests.inprocess.programs import (
    FEEDS,
    PROGRAMS,
    Entry,
    by_extra,
    by_mapping,
    entries_of,
    fed,
    from_a_file,
    json_formatter,
    lines_of,
    logged,
    logger_with,
)
from tests.recordings import RECORDINGS, Recording, recording

EVERY_RECORDING = pytest.mark.parametrize("recorded", RECORDINGS, ids=lambda one: one.name)


def contents(spans: Iterable[Span]) -> list[str]:
    """Spans in an order of their own, for those that no backend keeps in order."""
    return sorted(map(repr, spans))


@EVERY_RECORDING
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_logs_a_recorded_session_gives_the_spans_of_the_file(recorded: Recording, program: str) -> None:
    """Ids and contents are those of the recorded log, in whatever form a program logs its entries."""
    spans = logged(PROGRAMS[program], entries_of(recorded), capture="full")

    assert list(convert(recorded.lines, capture="full")) == spans


@EVERY_RECORDING
@pytest.mark.parametrize("form", FEEDS)
def test_entries_that_are_fed_give_the_spans_of_the_file(recorded: Recording, form: str) -> None:
    """Ids and contents are those of the recorded log for mappings, bytes and text."""
    spans = fed(map(FEEDS[form], entries_of(recorded)), capture="full")

    assert list(convert(recorded.lines, capture="full")) == spans


@pytest.mark.parametrize("name", ["happy", "noclose", "concurrent"])
def test_a_handler_and_a_tailed_file_give_the_same_spans(name: str, tmp_path: Path) -> None:
    """What arrives over OTLP from a program is what arrives from `tail` of a file with its entries.

    A tail ends no session that is open: that is the program's end alone.
    """
    entries = entries_of(recording(name))
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join([*lines_of(entries), b""]))
    with Receiver() as tailed, Receiver() as handled:
        with logger_with(BridgeHandler(endpoint=handled.endpoint)) as logger:
            for entry in entries:
                by_extra(logger, entry)
            for handler in logger.handlers:
                handler.flush()
            before_the_end = handled.spans
        tail(log, tmp_path / "state", tailed, len(before_the_end))

    assert contents(before_the_end) == contents(tailed.spans)
    assert contents(convert(lines_of(entries))) == contents(handled.spans)


def tail(log: Path, state: Path, receiver: Receiver, count: int) -> None:
    """Has the command follow a log until `count` spans have come."""
    options = ["--from", "beginning", "--state-dir", str(state), "--endpoint", receiver.endpoint]
    with subprocess.Popen([sys.executable, "-m", "otel_bridge", "tail", str(log), *options]) as process:
        try:
            receiver.wait_for(lambda r: len(r.spans) >= count, timeout_s=60)
        finally:
            process.terminate()


@EVERY_RECORDING
def test_a_handler_and_a_file_with_the_same_formatter_give_the_same_spans(recorded: Recording) -> None:
    """Entries that have no time of their own get that of the formatter, and its other names are no part of them."""
    file = io.StringIO()
    to_file, to_bridge = logging.StreamHandler(file), BridgeHandler(exporter := CapturingExporter(), capture="full")
    for handler in (to_file, to_bridge):
        handler.setFormatter(json_formatter())
    with logger_with(to_bridge) as logger:
        logger.addHandler(to_file)
        for entry in entries_of(recorded):
            del entry["timestamp"]
            by_extra(logger, entry)

    assert list(convert(file.getvalue().splitlines(keepends=False), capture="full")) == exporter.spans


@pytest.mark.parametrize("program", [by_extra, by_mapping])
def test_a_formatters_names_are_no_part_of_an_entry(program: object) -> None:
    """A file whose formatter adds names of its own agrees with a handler that has no formatter."""
    file = io.StringIO()
    to_file, to_bridge = logging.StreamHandler(file), BridgeHandler(exporter := CapturingExporter(), capture="full")
    formatter = json_formatter()
    formatter.timestamp = False  # type: ignore[attr-defined]  # the entries have their own
    to_file.setFormatter(formatter)
    with logger_with(to_bridge) as logger:
        logger.addHandler(to_file)
        for entry in session_entries():
            assert callable(program)
            program(logger, entry)

    assert list(convert(file.getvalue().splitlines(), capture="full")) == exporter.spans


def test_the_time_of_a_record_is_rounded_to_milliseconds() -> None:
    """An entry without a time of its own, or with one that cannot be used, has the record's."""
    exporter = CapturingExporter()
    with logger_with(BridgeHandler(exporter)) as logger:
        for created_s, fields in ((1_796_071_984.0006, {}), (1_796_071_985.0004, {"timestamp": "yesterday"})):
            record = logger.makeRecord("n", logging.INFO, "f", 1, "tool:call", (), None, extra={"tool": "x", **fields})
            record.created = created_s
            logger.handle(record)

    assert [span.start_ns for span in exporter.spans] == [1_796_071_984_001_000_000, 1_796_071_985_000_000_000]


@pytest.mark.parametrize("capture", Capture)
def test_ids_are_the_same_whatever_is_captured(capture: Capture) -> None:
    """Of the same entries, by any way and at any capture level."""
    entries = entries_of(recording("happy"))

    spans = logged(by_extra, entries, capture=capture.name.lower())

    assert from_a_file(entries, capture=capture) == spans
    assert [span.span_id for span in from_a_file(entries)] == [span.span_id for span in spans]


TEXT = st.text(max_size=12) | st.sampled_from(["\ud83d", "password='x'", "sk-abcdefghijklmnopqrstu", "\0", "é"])
NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    [*sorted(KNOWN_KINDS), "tool:error boom", "tool:error token=abc", "debug:memory"]
) | st.sampled_from(["tool: prose", "other", "[SM _updateSessionState s-1] State change: created -> running"])
FIELDS = st.fixed_dictionaries(
    {"message": KINDS, "timestamp": st.integers(1_796_071_984_000, 1_796_071_999_000)},
    optional={
        "sessionId": st.sampled_from(["s-1", "s-2", 7, None]),
        "sessionName": st.sampled_from(["demo", "Unknown Session"]),
        "tool": st.sampled_from(["create_debug_session", "step_over", "evaluate_expression"]),
        "request": VALUES,
        "error": VALUES,
        "event": st.sampled_from(["paused", "running"]),
        "env": VALUES,
        "result": VALUES,
        "other": VALUES,
    },
)


@settings(max_examples=60, deadline=None)
@given(entries=st.lists(FIELDS, max_size=12), program=st.sampled_from(sorted(PROGRAMS)))
def test_any_entries_give_the_spans_of_the_file(entries: list[Entry], program: str) -> None:
    """Whatever is in the entries, a program that logs them and a file that holds them give the same spans."""
    assert from_a_file(entries, capture="full") == logged(PROGRAMS[program], entries, capture="full")
