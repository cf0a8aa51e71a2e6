"""What a plain replay of every byte gives: what a backend must have in the end, no more and no less."""

from __future__ import annotations

from pathlib import Path

from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.replay import mapped
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from otel_bridge.testing import Receiver
from tests.waiting import wait_until

LONG_AFTER_MS = 4_000_000_000_000
Key = tuple[int, int]


def expected(path: Path, options: MappingOptions | None = None) -> dict[Key, Span]:
    """The spans of a plain replay, by trace and span id."""
    stage = MappingStage(options or MappingOptions(), lambda line: None)
    portions = mapped([str(path)], stage, LONG_AFTER_MS, lambda *_: None, lambda _: None)
    return {(span.trace_id, span.span_id): span for portion in portions for span in portion}


def received(receiver: Receiver) -> dict[Key, Span]:
    """What a receiver has, by trace and span id; AssertionError when one id came with two contents."""
    spans = receiver.spans
    found = {(span.trace_id, span.span_id): span for span in spans}
    assert len(found) == len(spans), "one id came with two contents"
    return found


def wait_for_all(receiver: Receiver, wanted: dict[Key, Span], deadline_s: float = 60.0) -> None:
    """Waits until the receiver has as many spans as wanted, then compares all of them."""
    wait_until(lambda: len(receiver.spans) >= len(wanted), f"{len(wanted)} spans arrived", deadline_s)
    found = received(receiver)

    assert found.keys() == wanted.keys()
    assert found == wanted
