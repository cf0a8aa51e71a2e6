"""From the bytes of a log to what the mapping takes."""

from __future__ import annotations

from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.reader import EntryReader


def items_of(log: bytes) -> list[Entry | StateChange]:
    """The entries and state lines of a whole log."""
    reader = EntryReader("log")
    items = reader.feed(log) + reader.flush()
    return [item for item in items if isinstance(item, Entry | StateChange)]
