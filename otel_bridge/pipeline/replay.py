"""Reads finished files once: entries, sessions, spans, delivered; then it is done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from otel_bridge.errors import SourceError
from otel_bridge.export.batches import Batch
from otel_bridge.export.delivery import Delivery, Outcome
from otel_bridge.export.encode import SpanEncoder
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.sessions.span import Span
from otel_bridge.sources import Chunk, order_files, read_blocks, refuse
from otel_bridge.sources.dap_traces import traces_of, trees
from otel_bridge.sources.files import reason
from otel_bridge.view.totals import Tally

STDIN = "-"
ALL_CALLS = 1 << 30
NEXT_STEP = "start a backend there or name another with --endpoint (`otel-bridge doctor` asks it)"

Progress = Callable[[str, int, int], None]
"""Told of each block: the path, the bytes read of it so far, and its size in bytes (0 when unknown)."""


class UndeliveredError(Exception):
    """Nothing got through for as long as the replay was told to try."""


class Replay:
    """One replay. `run` once; `tally` then knows its sessions, and `problems` what a person has to know."""

    def __init__(self, stage: MappingStage, delivery: Delivery, endpoint: str, patience_s: float) -> None:
        self._endpoint = endpoint
        self.tally = Tally()
        self.copies: list[str] = []
        self._stage = stage
        self._delivery = delivery
        self._patience_s = patience_s
        self._encoder = SpanEncoder()
        self._empty: list[str] = []
        self._unreadable: list[SourceError] = []

    def run(self, paths: Iterable[str], now_ms: int, progress: Progress, dap_traces: Sequence[Path] = ()) -> Outcome:
        """Exports all that can be read. Raises SourceError for a path that is not there, before anything is sent."""
        told = self._empty.append, self._unreadable.append
        try:
            for spans in mapped(
                paths, self._stage, now_ms, progress, *told, dap_traces=dap_traces, copy=self.copies.append
            ):
                self._submit(spans)
            self._wait(self._delivery.wait_until_done)
        except UndeliveredError:
            return self._delivery.close(0.0)
        except BaseException:
            self._delivery.close()
            raise
        return self._delivery.close(self._patience_s)

    def problems(self, outcome: Outcome) -> Iterator[str]:
        """What was not delivered and why, or not found; a line each."""
        yield from map(str, self._unreadable)
        for path in self._empty:
            yield f"{path}: no structured entry in it; is it mcp-debugger's own log, at level info or debug?"
        if outcome.left_spans:
            next_step = "" if outcome.was_answered else f"; {NEXT_STEP}"
            yield f"{outcome.left_spans} spans were not delivered to {self._endpoint}: {outcome.reason}{next_step}"
        if outcome.refused_spans:
            yield f"{outcome.refused_spans} spans were refused by the backend"

    def _submit(self, spans: list[Span]) -> None:
        if not spans:
            return
        for span in spans:
            self.tally.add(span)
        self._wait(self._delivery.wait_for_room)
        self._delivery.submit(Batch(tuple(map(self._encoder.encode, spans)), None))

    def _wait(self, wait: Callable[[float], bool]) -> None:
        """Waits as long as something moves; gives up when nothing did for the patience, or only a person can help."""
        waited_s, step_s = 0.0, min(0.25, self._patience_s)
        before = self._delivery.statistics().delivered_spans
        while not wait(step_s):
            now = self._delivery.statistics()
            waited_s = waited_s + step_s if now.delivered_spans == before else 0.0
            before = now.delivered_spans
            if now.needs_action or waited_s >= self._patience_s:
                raise UndeliveredError


def mapped(
    paths: Iterable[str],
    stage: MappingStage,
    now_ms: int,
    progress: Progress,
    empty: Callable[[str], None],
    unreadable: Callable[[SourceError], None] = refuse,
    dap_traces: Sequence[Path] = (),
    copy: Callable[[str], None] = lambda text: None,
) -> Iterator[list[Span]]:
    """The spans of all files, in portions; the files of one rotation chain are one log, oldest first.

    `now_ms` is what time it is at the end of the input: what may still live then is given as a snapshot. `-` is the
    standard input. `empty` is told of each log without a structured entry, `unreadable` of each file that cannot be
    read, or not to its end: the others are; `copy` in a line of each that holds what another does. DAP traces are
    looked for beside each log and among `dap_traces` (files and folders). Raises SourceError for a path that is not
    there.
    """
    wanted = list(dict.fromkeys(paths))
    dap = _DapTraces(dap_traces, unreadable)
    for chain in order_files([path for path in wanted if path != STDIN], unreadable, copy):
        before = stage.entries
        for path in chain.files:
            size_bytes = 0 if path.endswith(".gz") else Path(path).stat().st_size
            yield from _file(stage, chain.name, path, _readable(path, unreadable), size_bytes, progress)
        yield from dap.spans(stage, chain.name, trees(chain.files))
        yield _end(stage, chain.name, now_ms)
        if stage.entries == before:
            empty(chain.name)
    if STDIN in wanted:
        before = stage.entries
        yield from _file(stage, STDIN, STDIN, _standard_input(), 0, progress)
        yield from dap.spans(stage, STDIN, ())
        yield _end(stage, STDIN, now_ms)
        if stage.entries == before:
            empty("standard input")


def expects_dap(given: Iterable[Path]) -> Callable[[str], int]:
    """For a stage that replays: every ended call is remembered where there is a DAP trace to be read after the log."""
    has_given = any(True for _ in given)
    return lambda path: ALL_CALLS if has_given or trees([path]) else 0


def _readable(path: str, unreadable: Callable[[SourceError], None]) -> Iterator[bytes]:
    try:
        yield from read_blocks(path)
    except SourceError as error:
        unreadable(error)


class _DapTraces:
    """The DAP traces of a replay, each read for one log: of two logs with one session, the one that began first."""

    def __init__(self, given: Sequence[Path], unreadable: Callable[[SourceError], None]) -> None:
        self._given = given
        self._unreadable = unreadable
        self._read: set[str] = set()

    def spans(self, stage: MappingStage, chain: str, roots: Iterable[Path]) -> Iterator[list[Span]]:
        """What a log's sessions have, beside the log and among the given ones."""
        beside = [*roots]
        for session_id in list(stage.log(chain).mapping.dap):
            for path in traces_of(session_id, beside, self._given):
                if path not in self._read:
                    self._read.add(path)
                    yield from _file(stage, path, path, _readable(path, self._unreadable), 0, lambda *_: None)


def _end(stage: MappingStage, chain: str, now_ms: int) -> list[Span]:
    """The end of a log; a session that may still live keeps to itself what its DAP trace has not settled."""
    mapping = stage.log(chain).mapping
    spans = mapping.end(now_ms)
    return spans + mapping.close_dap([session_id for session_id in mapping.dap if session_id not in mapping.sessions])


def _file(
    stage: MappingStage, chain: str, path: str, blocks: Iterable[bytes], size_bytes: int, progress: Progress
) -> Iterator[list[Span]]:
    start_byte = 0
    for block in blocks:
        spans = stage.take(Chunk(chain, path, path, start_byte, block))
        start_byte += len(block)
        progress(path, start_byte, size_bytes)
        yield spans
    yield stage.take(Chunk(chain, path, path, start_byte, b"", ends_generation=True))


def _standard_input() -> Iterator[bytes]:
    while block := _read_standard_input():
        yield block


def _read_standard_input() -> bytes:
    if sys.stdin is None:  # it was closed when the process began
        raise SourceError("cannot read standard input: it is closed", "pipe a log into it")
    try:
        return os.read(sys.stdin.fileno(), 1 << 20)
    except OSError as error:
        raise SourceError(f"cannot read standard input: {reason(error)}", "pipe a log into it") from None
