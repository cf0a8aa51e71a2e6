"""Where a file that was not seen before belongs: a chain it continues, a chain of its own, or nowhere (a copy)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_bridge.sources.chain import Chain, rotation_index
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.identity import HEAD_BYTES, SEAM_BYTES
from otel_bridge.sources.names import join, rotations, split
from otel_bridge.sources.roster import Candidate, Ignored, Roster
from otel_bridge.sources.succession import continues, glimpse


def place(roster: Roster, candidates: Sequence[Candidate], now_s: float) -> list[Generation]:
    """Put every candidate where it belongs; the new generations are given back, those of one chain oldest first.

    A candidate that cannot be judged yet is put into `roster.waiting`, open, and asked about again in the next look.
    Raises OSError when a file cannot be read.
    """
    originals = [candidate for candidate in candidates if not _is_copy(roster, candidate)]
    roots: dict[str, Candidate] = {candidate.path: candidate for candidate in originals}
    members: list[tuple[int, Chain, Candidate]] = []
    # Short names first: what another one may be a rotated part of is judged before it.
    for candidate in sorted(originals, key=lambda candidate: (len(candidate.path), candidate.path)):
        roster.waiting.pop(candidate.key, None)
        chain = _chain_of(roster, candidate, roots)
        if chain is None and (not candidate.own or _base_may_come(candidate)):
            _wait(roster, candidate)
        else:
            chain = chain or roster.new_chain(candidate.path, candidate.key)
            members.append((rotation_index(candidate.path, chain.base) or 0, chain, candidate))
    placed = []
    for _, chain, candidate in sorted(members, key=lambda member: -member[0]):
        generation = chain.place(candidate.path, candidate.handle, candidate.found, now_s)
        placed.append(roster.add(generation))
    return placed


def _wait(roster: Roster, candidate: Candidate) -> None:
    candidate.looks += 1
    roster.waiting[candidate.key] = candidate


def _base_may_come(candidate: Candidate) -> bool:
    """While winston rotates the base name is missing for up to 4 ms: a name that can be a rotated one waits a look."""
    return candidate.looks == 0 and candidate.found.size_bytes > 0 and bool(rotations(split(candidate.path)[1]))


def _chain_of(roster: Roster, candidate: Candidate, roots: dict[str, Candidate]) -> Chain | None:
    if (chain := roster.by_base.get(candidate.path)) is not None:
        return chain
    folder, name = split(candidate.path)
    for root, _ in rotations(name):
        base = join(folder, root)
        chain = roster.by_base.get(base)
        if chain is None:
            continue
        current = chain.generations[-1] if chain.generations else None
        beside = roots.get(base)
        if current is None and beside is None:
            continue
        displaced = current is not None and (current.path != base or current.links == 0)
        if displaced or _follows(candidate, current, beside):
            return chain
    return None


def _follows(candidate: Candidate, current: Generation | None, beside: Candidate | None) -> bool:
    """Whether the log that lies at the base now can be what the candidate's writer went on with."""
    newer = beside.handle if beside is not None else None if current is None else current.handle
    return newer is not None and continues(glimpse(candidate.handle), glimpse(newer))


def _is_copy(roster: Roster, candidate: Candidate) -> bool:
    """Whether the candidate holds what is known already (copytruncate's copy); such a file is never read from 0.

    While it is still being written it may be too short to tell; then it waits.
    """
    folder, name = split(candidate.path)
    size = candidate.handle.stat().size_bytes
    if size == 0:
        if candidate.path in roster.by_base or not any(
            join(folder, root) in roster.by_base for root, _ in rotations(name)
        ):
            return False
        _wait(roster, candidate)
        return True
    original = copied_from(roster.generations(), candidate)
    if original is None:
        return False
    roster.waiting.pop(candidate.key, None)
    roster.ignored[candidate.key] = Ignored(candidate.path, size)
    candidate.handle.close()
    return True


def copied_from(generations: Iterable[Generation], candidate: Candidate) -> Generation | None:
    """The generation whose bytes the candidate repeats from the first to its last, as far as three samples show."""
    size = candidate.handle.stat().size_bytes
    head = candidate.handle.pread(HEAD_BYTES, 0)
    tail_start = max(0, size - SEAM_BYTES)
    tail = candidate.handle.pread(SEAM_BYTES, tail_start)
    for generation in generations:
        if generation.handle is None or generation.size < size or not generation.head.startswith(head):
            continue
        if generation.handle.pread(len(tail), tail_start) == tail:
            return generation
    return None
