"""What the mapping of a real log needs after a restart is in the state, to the last value."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.saved import restore, take_changes
from otel_bridge.sessions.span import Span
from otel_bridge.sources.replay import read_blocks
from otel_bridge.state.commit import Commit
from otel_bridge.state.store import StateStore
from tests.sessions.reading import items_of
from tests.state.commits import checkpoint

LOGS = Path(__file__).parents[1] / "data" / "logs"
OPTIONS = MappingOptions()


def restored(folder: Path) -> LogMapping:
    """The mapping that the next bridge begins with."""
    with StateStore.open(folder) as store:
        saved = store.load().logs.get("c")
    return restore(OPTIONS, saved.log, saved.sessions, saved.occurrences) if saved else LogMapping(OPTIONS)


def by_id(spans: list[Span]) -> list[Span]:
    """The spans in an order of their own: in which order sessions that end together are given out is left open."""
    return sorted(spans, key=lambda span: (span.trace_id, span.span_id))


@pytest.mark.parametrize("log", ["happy", "concurrent", "errors", "noclose_inflight", "burst"])
def test_restarts_at_any_entry_change_no_span(log: str, tmp_path: Path) -> None:
    """A real log, mapped by a bridge that is started anew every few entries, gives the spans of one that never is."""
    items = items_of(b"".join(read_blocks(str(next((LOGS / log).glob("server.log*"))))))
    whole = LogMapping(OPTIONS)
    expected = [*whole.take(items), *whole.end(whole.latest_ms)]
    rng = random.Random(log)
    spans: list[Span] = []
    position = 0
    while position < len(items):
        mapping = restored(tmp_path)
        with StateStore.open(tmp_path) as store:
            for _ in range(rng.randint(1, 8)):
                until = position + rng.randint(1, 30)
                spans += mapping.take(items[position:until])
                position = until
                store.commit(Commit({"c#1": checkpoint("c")}, {"c": take_changes(mapping)}))
    last = restored(tmp_path)

    assert by_id([*spans, *last.end(last.latest_ms)]) == by_id(expected)
