"""What a plain replay of every byte gives: what a backend must have in the end, no more and no less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.replay import mapped
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.span import Span
from otel_bridge.testing import Receiver
from tests.waiting import wait_until

LONG_AFTER_MS = 4_000_000_000_000
SHOWN = 5
Key = tuple[int, int]


def expected(*paths: Path, options: MappingOptions | None = None) -> dict[Key, Span]:
    """The spans of a plain replay, by trace and span id."""
    stage = MappingStage(options or MappingOptions(), lambda line: None)
    portions = mapped(map(str, paths), stage, LONG_AFTER_MS, lambda *_: None, lambda _: None)
    return by_id(span for portion in portions for span in portion)


def by_id(spans: Iterable[Span]) -> dict[Key, Span]:
    """Spans by trace and span id; AssertionError when one id has two contents."""
    found: dict[Key, Span] = {}
    for span in spans:
        known = found.setdefault((span.trace_id, span.span_id), span)
        assert known == span, f"one id, two contents:\n{known}\n{span}"
    return found


def wait_for_all(receiver: Receiver, wanted: Mapping[Key, Span], deadline_s: float = 60.0) -> None:
    """Waits until the receiver has as many spans as wanted, then compares all of them."""
    try:
        wait_until(lambda: len(receiver.spans) >= len(wanted), "all spans arrived", deadline_s)
    except AssertionError:
        check_same(by_id(receiver.spans), wanted)
        raise
    check_same(by_id(receiver.spans), wanted)


def wait_for_witnessed(receiver: Receiver, wanted: Mapping[Key, Span], deadline_s: float = 60.0) -> None:
    """As `wait_for_all`, where the copy of what was written may have gaps itself, on a machine that is busy.

    More than is wanted may arrive then, and a call whose answer only the bridge saw differs: so every call that the
    copy has must be there.
    """
    calls = {key for key, span in wanted.items() if span.name.startswith("tools/call ")}
    wait_until(lambda: calls <= by_id(receiver.spans).keys(), "every call that was seen arrived", deadline_s)


def check_same(found: Mapping[Key, object], wanted: Mapping[Key, object]) -> None:
    """AssertionError, with some examples, unless both hold the same spans."""
    missing = [wanted[key] for key in wanted.keys() - found.keys()]
    extra = [found[key] for key in found.keys() - wanted.keys()]
    differ = [(found[key], wanted[key]) for key in wanted.keys() & found.keys() if found[key] != wanted[key]]
    if not missing and not extra and not differ:
        return
    lines = [f"{len(wanted)} spans wanted, {len(found)} there"]
    for title, some in (("missing", missing), ("extra", extra), ("different (there, wanted)", differ)):
        lines += [f"{title}: {len(some)}", *(f"    {one}" for one in some[:SHOWN])]
    raise AssertionError("\n".join(lines))
