"""Where a file that was not seen before belongs: a chain it continues, a chain of its own, or nowhere (a copy)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from otel_bridge.sources.chain import Chain, rotation_age
from otel_bridge.sources.files import Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.identity import HEAD_BYTES, SEAM_BYTES
from otel_bridge.sources.names import join, rotations, split
from otel_bridge.sources.roster import Candidate, Roster
from otel_bridge.sources.succession import continues, glimpse

_FRESH_S = 1.0
"""How long something counts as having just happened."""
_ALIKE_S = 2.0
"""How long a short file that begins like a known one is given to become different."""


class _Kind(Enum):
    NEW = "new"
    COPY = "copy"
    UNCLEAR = "unclear"


def place(
    roster: Roster, candidates: Sequence[Candidate], now_s: float, cannot_read: Callable[[str, OSError], None]
) -> list[Generation]:
    """Put every candidate where it belongs; the new generations are given back, those of one chain oldest first.

    A candidate that cannot be judged yet is put into `roster.waiting`, open, and asked about again in the next look.
    """
    beside = {candidate.path: candidate for candidate in candidates}
    members: list[tuple[int, Chain, Candidate]] = []
    # Short names first: what another one may be a rotated part of is judged before it.
    for candidate in sorted(candidates, key=lambda candidate: (len(candidate.path), candidate.path)):
        roster.waiting.pop(candidate.key, None)
        if candidate.key in roster.by_key:
            candidate.handle.close()
            continue
        try:
            chain = _chain_for(roster, candidate, beside, now_s)
        except OSError as error:
            cannot_read(candidate.path, error)
            chain = None
        if chain is not None:
            members.append((rotation_age(candidate.path, chain.base) or 0, chain, candidate))
        elif candidate.key not in roster.ignored:
            candidate.waited = True
            if candidate.handle.stat().links:
                roster.waiting[candidate.key] = candidate
            else:
                candidate.handle.close()  # a copy or another log's part, and gone
    return [
        roster.add(chain.place(candidate.path, candidate.handle, candidate.found, now_s))
        for _, chain, candidate in sorted(members, key=lambda member: -member[0])
    ]


def _chain_for(roster: Roster, candidate: Candidate, beside: dict[str, Candidate], now_s: float) -> Chain | None:
    """The chain that the candidate belongs to, made if need be; None where it is a copy or cannot be judged yet.

    Raises OSError when a file cannot be read.
    """
    kind = _judge(roster, candidate, beside, now_s)
    if kind is _Kind.COPY:
        roster.ignore(candidate.path, candidate.handle.stat(), candidate.handle)
        return None
    if kind is _Kind.UNCLEAR:
        return None
    if (chain := _chain_of(roster, candidate, beside, now_s)) is not None:
        return chain
    if not candidate.own or _base_may_come(candidate):
        return None
    return roster.new_chain(candidate.path, candidate.key)


def _base_may_come(candidate: Candidate) -> bool:
    """While winston rotates, the base name is missing for up to 4 ms: a name that can be a rotated one waits a look."""
    return not candidate.waited and bool(rotations(split(candidate.path)[1]))


def _chain_of(roster: Roster, candidate: Candidate, beside: dict[str, Candidate], now_s: float) -> Chain | None:
    if (chain := roster.by_base.get(candidate.path)) is not None:
        return chain
    folder, name = split(candidate.path)
    for root, _ in rotations(name):
        chain = roster.by_base.get(join(folder, root))
        if chain is not None and _is_part(candidate, chain, beside.get(chain.base), now_s):
            return chain
    return None


def _is_part(candidate: Candidate, chain: Chain, new_base: Candidate | None, now_s: float) -> bool:
    """Whether a file with a rotated name is what lay at the chain's base before.

    It is when it appeared while the base changed hands, and is not when it appeared while the base stayed what it was.
    Where nobody saw that, the contents decide, once for all. A file that nobody asked for by itself is taken for a part
    where nothing speaks against it: else it would not be read at all.
    """
    if chain.id in candidate.not_of:
        return False
    current = chain.generations[-1] if chain.generations else None
    if current is not None:
        changed = current.path != chain.base or current.links == 0 or now_s - chain.changed_s < _FRESH_S
        if changed and now_s - candidate.since_s < _FRESH_S:
            return True
        # (A listing can miss a name, so what comes right after the first file may have been there with it.)
        # Not so of `server.log.1`: no process's own log has such a name, and copytruncate makes it beside a base that
        # stays, maybe between two looks at lines which nobody saw in the base.
        stayed = not changed and new_base is None and not candidate.path.startswith(chain.base)
        if stayed and not candidate.early and now_s - chain.began_s >= _FRESH_S:
            return False
    newer = new_base.handle if new_base is not None else None if current is None else current.handle
    if newer is None:
        return False
    seen = glimpse(newer)
    if seen.size_bytes == 0:
        return not candidate.own or continues(glimpse(candidate.handle), seen)
    is_part = continues(glimpse(candidate.handle), seen)
    if not is_part:
        candidate.not_of.add(chain.id)
    return is_part


def _judge(roster: Roster, candidate: Candidate, beside: dict[str, Candidate], now_s: float) -> _Kind:
    """Whether a file repeats what is known already: copytruncate's copy, a backup.

    Logs can begin alike without being copies (vector #25079; opentelemetry-collector-contrib #19765, #20851), and a
    copy that is still being written is short: what cannot be told yet is asked again.
    """
    folder, name = split(candidate.path)
    size = candidate.handle.stat().size_bytes
    head = candidate.handle.pread(HEAD_BYTES, 0)
    bases = [join(folder, root) for root, _ in rotations(name)]
    new_bases = [beside[base] for base in bases if base in beside]
    rotated = bool(new_bases) or any(base in roster.by_base for base in bases)
    if not head:
        return _Kind.UNCLEAR if rotated else _Kind.NEW
    if any(_repeats(base.handle, candidate, size) for base in new_bases):
        return _Kind.COPY
    alike = [known for known in roster.by_id.values() if known.head and _alike(known.head, head)]
    if not alike:
        return _Kind.NEW
    if len(head) < HEAD_BYTES:
        return _Kind.UNCLEAR if rotated or now_s - candidate.since_s < _ALIKE_S else _Kind.NEW
    if any(
        size == known.position and known.continued_in(candidate.handle)
        if known.handle is None
        else _repeats(known.handle, candidate, size)
        for known in alike
    ):
        return _Kind.COPY
    # The original may have been cut just now, or hold more than when it was last looked at.
    return _Kind.NEW if candidate.waited else _Kind.UNCLEAR


def _alike(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


def _repeats(known: Handle, candidate: Candidate, size: int) -> bool:
    """Whether all of the candidate stands in the known file too, as far as samples show."""
    if known.stat().size_bytes < size:
        return False
    last = max(0, size - SEAM_BYTES)
    return all(
        known.pread(length, offset) == candidate.handle.pread(length, offset)
        for offset, length in (
            (0, min(size, HEAD_BYTES)),
            (last // 2, SEAM_BYTES),
            (3 * last // 4, SEAM_BYTES),
            (last, size - last),
        )
    )
