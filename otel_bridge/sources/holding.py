"""How long files are kept open: the end of generations, caps on what only we hold, and rest for quiet files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from otel_bridge.sources.files import FileKey, Files
from otel_bridge.sources.generation import QUIET_S, Generation
from otel_bridge.sources.notices import NoticeKind
from otel_bridge.sources.roster import Roster

InUse = Callable[[FileKey], bool | None]
"""Whether a process has the file open for writing; None where that cannot be known."""

_UNKNOWN_USE_S = 600.0
"""How long an unlinked log that may still be written to is kept when nobody can say whether it is."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many files, and bytes, are held that have no name any more, and how many files with a name are kept open."""

    held_files: int = 64
    held_bytes: int = 4 * 1024**3
    open_files: int = 128


def end_is_due(roster: Roster, generation: Generation, now_s: float, in_use: InUse) -> bool:
    """Whether the end of a generation can be given out: all is read, the log goes on elsewhere, and nothing grows."""
    if generation.end_given or generation.unread > 0:
        return False
    if generation.over:
        return True
    quiet_s = now_s - generation.grown_s
    if quiet_s < QUIET_S:
        return False
    if roster.chains[generation.chain].left(generation):
        return True
    # Unlinked, and no newer file: a paused server may still write to it for as long as it runs.
    return generation.nameless(now_s) and (in_use(generation.key) is False or quiet_s >= _UNKNOWN_USE_S)


def settle(roster: Roster, now_s: float, in_use: InUse) -> None:
    """Close and forget what is delivered and gone."""
    for generation in list(roster.by_id.values()):
        if generation.resting and generation.nameless(now_s) and generation.unread > 0:
            text = (
                f"{generation.path} was deleted while too many files were open to keep it: "
                f"{generation.unread} bytes from byte {generation.position} on are lost"
            )
            roster.say(NoticeKind.HELD_CAP, generation, text, generation.unread)
            roster.give_up(generation)
        if not (generation.end_given and generation.released):
            continue
        closed = generation.handle is None
        if (closed and generation.over) or (
            generation.nameless(now_s) and (closed or in_use(generation.key) is not True)
        ):
            roster.forget(generation)


def say_removed(roster: Roster) -> None:
    """Say once of each log whose newest file was deleted, and which has no newer one, that it is followed on."""
    for chain in roster.chains.values():
        last = chain.generations[-1] if chain.generations else None
        if last is not None and last.links == 0 and not last.end_given and not last.removal_said:
            last.removal_said = True
            text = f"{last.path} was deleted; it is read to its end, and until its writer lets it go"
            roster.say(NoticeKind.REMOVED, last, text)


def cap(roster: Roster, now_s: float, caps: Caps) -> None:
    """Give up what exceeds the caps on files that have no name any more: what is read first, then the oldest.

    A file that nobody can see takes its space on the disk until we close it (vector #11742, #15067, #21998).
    """
    held = [found for found in roster.by_id.values() if found.handle is not None and found.nameless(now_s)]
    held.sort(key=lambda generation: (generation.unread > 0, generation.grown_s, generation.order))
    held_bytes = sum(generation.size for generation in held)
    while len(held) > caps.held_files or held_bytes > caps.held_bytes:
        generation = held.pop(0)
        held_bytes -= generation.size
        position = generation.position
        lost_bytes = roster.give_up(generation)
        if lost_bytes:
            text = (
                f"{generation.path} was rotated away and is given up at byte {position}: {lost_bytes} bytes are lost, "
                f"because more than {caps.held_files} files or {caps.held_bytes >> 20} MiB were waiting to be read"
            )
            roster.say(NoticeKind.HELD_CAP, generation, text, lost_bytes)


def rest(roster: Roster, now_s: float, max_open: int) -> None:
    """Close the quietest files that have a name, read ones first, so that not more than `max_open` stay open."""
    named = [found for found in roster.by_id.values() if found.handle is not None and not found.nameless(now_s)]
    excess = len(named) - max_open
    if excess <= 0:
        return
    named.sort(key=lambda generation: (generation.unread > 0, generation.grown_s))
    for generation in named[:excess]:
        generation.close()


def is_same(files: Files, resting: Generation, path: str) -> bool:
    """Whether a file that is not kept open was found at a path, or only its inode number, which is used again."""
    if path == resting.path or not resting.head:
        return path == resting.path
    try:
        handle = files.open(path)
    except OSError:
        return True  # it is told when it can be read
    try:
        return resting.continued_in(handle)
    except OSError:
        return True
    finally:
        handle.close()


def wake(files: Files, generation: Generation, *, to_read: bool = False) -> bool:
    """Open a resting file again if it has changed, or to be read; whether that was done.

    Raises OSError as the system says.
    """
    found = files.stat(generation.path)
    as_it_was = (found.size_bytes, found.modified_ns) == (generation.size, generation.modified_ns)
    if found.key != generation.key or (as_it_was and not to_read):
        return False
    handle = files.open(generation.path)
    if handle.stat().key != generation.key:
        handle.close()
        return False
    generation.handle = handle
    return True
