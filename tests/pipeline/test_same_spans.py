"""However a log reaches the mapping, whole or in pieces, at once or as it grows, the spans are the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_bridge.entries.entry import Malformed
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.replay import mapped
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from otel_bridge.sources import Chunk, Follower, Start
from tests.recordings import Recording, recordings

RECORDINGS = {recording.name: recording for recording in recordings()}
OPTIONS = MappingOptions()
LONG_AFTER_MS = 4_000_000_000_000


def no_flaw(line: Malformed) -> None:
    """The recordings have no malformed line."""
    raise AssertionError(line)


def replayed(paths: Sequence[Path]) -> list[Span]:
    """The spans of a plain replay, long after the log's end."""
    stage = MappingStage(OPTIONS, no_flaw)
    portions = mapped([str(path) for path in paths], stage, LONG_AFTER_MS, lambda *_: None, no_empty)
    return [span for portion in portions for span in portion]


def no_empty(path: str) -> None:
    """No recording is empty."""
    raise AssertionError(path)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The data, cut at these places (of which any may lie beyond its end)."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 1 << 20), max_size=40)


@pytest.mark.parametrize("name", ["happy", "concurrent", "errors", "output", "secrets"])
@given(cuts=CUTS)
@settings(max_examples=15, deadline=None)
def test_any_cut_into_chunks_gives_the_same_spans(name: str, cuts: list[int]) -> None:
    """A chunk may end anywhere, also within a character."""
    log = RECORDINGS[name].log
    whole, cut = MappingStage(OPTIONS, no_flaw), MappingStage(OPTIONS, no_flaw)
    expected = whole.take(Chunk("log", "g", "log", 0, log, ends_generation=True))
    expected += whole.log("log").mapping.end(LONG_AFTER_MS)

    spans: list[Span] = []
    offset = 0
    for piece in pieces(log, cuts):
        spans += cut.take(Chunk("log", "g", "log", offset, piece))
        offset += len(piece)
    spans += cut.take(Chunk("log", "g", "log", offset, b"", ends_generation=True))
    spans += cut.log("log").mapping.end(LONG_AFTER_MS)

    assert spans == expected


@pytest.mark.parametrize("name", ["happy", "concurrent", "kill9"])
@given(cuts=CUTS, rotate_at=st.sets(st.integers(1, 20), max_size=2))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_a_growing_log_gives_the_spans_of_its_replay(
    name: str, cuts: list[int], rotate_at: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Written piece by piece, rotated as winston does at up to two of them, and read in between."""
    folder = tmp_path_factory.mktemp("growing")
    log = folder / "server.log"
    follower = Follower([str(log)], start=Start.BEGINNING)
    stage = MappingStage(OPTIONS, no_flaw)
    spans: list[Span] = []
    for number, piece in enumerate(pieces(RECORDINGS[name].log, cuts)):
        ends_whole = log.exists() and log.read_bytes().endswith(b"\n")
        if number in rotate_at and ends_whole:  # winston never splits a line
            rotate(folder)
        with log.open("ab") as file:
            file.write(piece)
        follower.look()
        spans += read_all(follower, stage)
    follower.close()
    for followed in stage.logs.values():
        spans += followed.mapping.end(LONG_AFTER_MS)

    assert by_id(spans) == by_id(replayed(sorted(folder.glob("server*.log"))))


def rotate(folder: Path) -> None:
    """`server1.log` becomes `server2.log`, `server.log` becomes `server1.log`."""
    if (folder / "server1.log").exists():
        (folder / "server1.log").rename(folder / "server2.log")
    (folder / "server.log").rename(folder / "server1.log")


def read_all(follower: Follower, stage: MappingStage) -> list[Span]:
    """Everything there is to read now."""
    spans: list[Span] = []
    while chunks := follower.read():
        for chunk in chunks:
            spans += stage.take(chunk)
    return spans


def by_id(spans: Sequence[Span]) -> dict[tuple[int, int], Span]:
    """The set of spans; the order of sending is of no matter."""
    found = {(span.trace_id, span.span_id): span for span in spans}
    assert len(found) == len(spans)
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_files_of_a_chain_are_one_log_in_any_order(name: str, tmp_path: Path) -> None:
    """Given newest first, replay reads them oldest first; nothing of the real logs is malformed."""
    recording: Recording = RECORDINGS[name]
    paths = recording.unpack(tmp_path)
    whole = MappingStage(OPTIONS, no_flaw)
    expected = whole.take(Chunk("log", "g", "log", 0, recording.log, ends_generation=True))
    expected += whole.log("log").mapping.end(LONG_AFTER_MS)

    assert by_id(replayed(paths[::-1])) == by_id(expected)
