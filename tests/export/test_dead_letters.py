from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.errors import StateError
from otel_bridge.export import otlp_json
from otel_bridge.export.dead_letters import DeadLetter, DeadLetters
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.span import Span
from otel_bridge.testing import decode_spans
from tests.export.spans import span, spans

REQUEST = RequestEncoder(Resource({"service.name": "x"}), Scope())


def letter(*numbers: int, text: str = "") -> DeadLetter:
    encoded = tuple(SpanEncoder().encode(span(number, text=text)) for number in numbers)
    return DeadLetter(encoded, 1, "HTTP 400", "bad span", 1_700_000_000.5)


@pytest.fixture
def letters(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "state" / "dead-letters.jsonl")


def test_round_trip(letters: DeadLetters) -> None:
    """What was added is read again, with everything that a second try needs: spans, resource and scope."""
    assert letters.add([letter(1), letter(2, 3)], REQUEST) == [True, True]

    first, second = letters.read().letters
    assert (first.span_count, first.refused_count, first.code, first.reason) == (1, 1, "HTTP 400", "bad span")
    assert first.time == "2023-11-14T22:13:20.500+00:00"
    assert second.body == REQUEST.encode(letter(2, 3).spans)
    assert decode_spans(second.body) == (span(2), span(3))


@given(st.lists(spans(), min_size=1, max_size=3))
def test_nothing_changes_on_the_way(some: list[Span]) -> None:
    """OTLP/JSON and back gives the same message, whatever is in it; ids are hex digits there."""
    body = REQUEST.encode([SpanEncoder().encode(one) for one in some])

    as_json = json.loads(json.dumps(otlp_json.from_request(body)))

    ids = [(one["traceId"], one["spanId"]) for one in otlp_json.spans_of(as_json)]
    assert ids == [(f"{one.trace_id:032x}", f"{one.span_id:016x}") for one in some]
    assert otlp_json.from_request(otlp_json.to_request(as_json)) == otlp_json.from_request(body)


def test_only_for_this_user(letters: DeadLetters) -> None:
    """The file can be read by its user alone, and its folder entered."""
    letters.add([letter(1)], REQUEST)

    assert stat.S_IMODE(letters.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(letters.path.parent.stat().st_mode) == 0o700


def test_no_file_yet(letters: DeadLetters) -> None:
    """Before the first refusal there is nothing to read, and nothing is made by reading."""
    assert letters.read().letters == ()
    assert not letters.path.exists()


def test_bound(letters: DeadLetters) -> None:
    """A file at its bound takes no more, says so, and takes again once something was removed."""
    letters.add([letter(1)], REQUEST)
    small = DeadLetters(letters.path, max_bytes=2 * letters.path.stat().st_size)

    assert small.add([letter(2), letter(3, text="x" * 2000), letter(4)], REQUEST) == [True, False, False]
    assert letters.path.stat().st_size <= small.max_bytes
    small.remove([small.read().letters[0].key])
    assert small.add([letter(4)], REQUEST) == [True]


def test_remove(letters: DeadLetters) -> None:
    """Removing takes out what was named, and leaves the rest in order."""
    letters.add([letter(number) for number in range(1, 6)], REQUEST)
    keys = [one.key for one in letters.read().letters]

    letters.remove([keys[1], keys[3], "unknown"])

    assert [one.key for one in letters.read().letters] == [keys[0], keys[2], keys[4]]
    assert stat.S_IMODE(letters.path.stat().st_mode) == 0o600


def test_torn_line(letters: DeadLetters) -> None:
    """Half a line, left by a kill or a full disk, is counted and skipped, and does not swallow the next letter."""
    letters.add([letter(1), letter(2)], REQUEST)
    whole = letters.path.read_bytes()
    letters.path.write_bytes(whole[:-40])
    letters.add([letter(3)], REQUEST)

    contents = letters.read()
    assert [decode_spans(one.body) for one in contents.letters] == [(span(1),), (span(3),)]
    assert contents.broken_lines == 1


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"refused":{}}', '{"refused":1}', "\x00", '{"refused":{"count":1},"resourceSpans":[1]}']
)
def test_foreign_lines(letters: DeadLetters, line: str) -> None:
    """A line of somebody else is counted, and stays where it is when letters are removed."""
    letters.add([letter(1)], REQUEST)
    with letters.path.open("a") as file:
        file.write(line + "\n")
    (stored,) = letters.read().letters
    letters.remove([stored.key])

    assert (letters.read().letters, letters.read().broken_lines) == ((), 1)
    assert letters.path.read_text() == line + "\n"


def test_written_twice(letters: DeadLetters) -> None:
    """The same refusal written twice, by a kill between letter and mark, is one letter, and removed as one."""
    letters.add([letter(1)], REQUEST)
    letters.add([letter(1)], REQUEST)

    (stored,) = letters.read().letters
    letters.remove([stored.key])
    assert letters.path.read_bytes() == b""


def test_two_processes(letters: DeadLetters) -> None:
    """A removal by another process does not undo a letter that is added meanwhile."""
    letters.add([letter(1)], REQUEST)
    code = """
        import sys
        from pathlib import Path
        from otel_bridge.export.dead_letters import DeadLetters
        letters = DeadLetters(Path(sys.argv[1]))
        key = letters.read().letters[0].key
        print("ready", flush=True)
        for _ in range(50):
            letters.remove([key])
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(letters.path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in range(2, 52):
            letters.add([letter(number)], REQUEST)
        assert process.wait(60) == 0

    assert [decode_spans(one.body)[0].span_id for one in letters.read().letters] == list(range(2, 52))


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    """What is no regular file is neither read nor written, and does not hang."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")

    for path in (pipe, link, tmp_path):
        with pytest.raises(StateError, match=path.name):
            DeadLetters(path).read()
        with pytest.raises(StateError, match=path.name):
            DeadLetters(path).add([letter(1)], REQUEST)


def test_full_disk(letters: DeadLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in the middle of a line is an error, and the line is whole after the next try."""
    letters.add([letter(1)], REQUEST)
    real_write = os.write

    def write_some(file: int, data: memoryview) -> int:
        if len(data) > 100:
            return real_write(file, data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_some)
        with pytest.raises(StateError, match="No space left on device; check"):
            letters.add([letter(2)], REQUEST)
    letters.add([letter(2)], REQUEST)

    contents = letters.read()
    assert [decode_spans(one.body) for one in contents.letters] == [(span(1),), (span(2),)]
    assert contents.broken_lines == 1
