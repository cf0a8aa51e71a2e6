"""A log that was rotated all the way round between two looks: files may have come and gone that nobody saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from otel_bridge.sources.generation import Generation
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.roster import Roster
from otel_bridge.sources.succession import began_ms


def overtaken(roster: Roster, placed: Sequence[Generation]) -> Iterator[Notice]:
    """What to say of the logs of these files, which one look found.

    Where the newest file of a log that was known before has no name any more, and its successor is found under a
    rotated name, the rotation went round since the last look: as many files as have a name, or more. Which of the two
    cannot be known, so it is said (rule 14: no gap in silence).
    """
    for chain_id, group in groupby(placed, key=lambda generation: generation.chain):
        chain, first = roster.chains[chain_id], next(group)
        index = chain.generations.index(first)
        before = chain.generations[index - 1] if index else None
        if before is None or before.over or before.handle is None or before.links or first.path == chain.base:
            continue
        text = (
            f"{chain.base} was rotated all the way round between two looks: what lay between byte {before.size} of the "
            f"file before and {first.path}{_times(first)} was not read, if there was anything; "
            "let its files be larger, or the machine be less busy"
        )
        yield Notice(NoticeKind.OVERTAKEN, chain.base, text, chain.id, before.size, at_least=True)


def _times(first: Generation) -> str:
    try:
        time_ms = began_ms(first.handle) if first.handle is not None else None
    except OSError:
        time_ms = None
    if time_ms is None:
        return ""
    return f", which begins at {datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec='milliseconds')},"
