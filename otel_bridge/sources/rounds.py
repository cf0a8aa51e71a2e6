"""A log that was rotated all the way round between two looks: files may have come and gone that nobody saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from otel_bridge.sources.generation import Generation
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.roster import Roster
from otel_bridge.sources.succession import began_ms

_ONE_MOMENT_NS = 10_000_000
"""The clock by which file systems stamp a change moves every 4 to 10 ms."""


def overtaken(roster: Roster, placed: Sequence[Generation]) -> Iterator[Notice]:
    """What to say of the logs of these files, which one look found.

    Where the newest file of a log that was known before has no name any more, the rotation went round since the last
    look. Its successor took the name from it: both changed in that moment. Where the oldest that is found changed
    later, others were between the two (rule 14: no gap in silence; how many cannot be known).
    """
    for chain_id, group in groupby(placed, key=lambda generation: generation.chain):
        chain, first = roster.chains[chain_id], next(group)
        index = chain.generations.index(first)
        before = chain.generations[index - 1] if index else None
        if before is None or before.over or before.links or first.path == chain.base or not _is_later(first, before):
            continue
        text = (
            f"{chain.base} was rotated all the way round between two looks: what was written between byte "
            f"{before.size} of the file before and {first.path}{_times(first)} came and went unread; "
            "let its files be larger, or the machine be less busy"
        )
        yield Notice(NoticeKind.OVERTAKEN, chain.base, text, chain.id, before.size, at_least=True)


def _is_later(first: Generation, before: Generation) -> bool:
    if first.handle is None or before.handle is None:
        return False
    try:
        found = first.handle.stat()
        # What a second writer still writes to has changed since, for that reason.
        latest_ns = max(before.handle.stat().changed_ns, found.modified_ns)
        return found.changed_ns - latest_ns > _ONE_MOMENT_NS
    except OSError:
        return False


def _times(first: Generation) -> str:
    try:
        time_ms = began_ms(first.handle) if first.handle is not None else None
    except OSError:
        time_ms = None
    if time_ms is None:
        return ""
    return f", which begins at {datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec='milliseconds')},"
