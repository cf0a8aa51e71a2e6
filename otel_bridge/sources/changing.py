"""When a followed file is not what it was: where its old bytes went, and what follows them.

`copytruncate` copies a log and then cuts it to nothing, while the writer goes on. What was not read before the cut is
read from the copy, which is told by its contents, never by its name. What was written between the copy and the cut is
lost to every reader; as far as it was seen, it is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from otel_bridge.sources.chain import rotation_age
from otel_bridge.sources.files import Files, Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.identity import SEAM_BYTES
from otel_bridge.sources.names import join, split
from otel_bridge.sources.notices import NoticeKind
from otel_bridge.sources.roster import Candidate, Roster


def change(roster: Roster, files: Files, generation: Generation, now_s: float) -> None:
    """End a generation whose file was truncated or rewritten.

    What the file holds now is the next generation; under another name than the log's own it may be the copy of another
    one, so there it waits to be judged. Raises OSError when a file cannot be read.
    """
    handle = generation.handle
    assert handle is not None
    path, found = generation.path, handle.stat()
    copy = _find_copy(roster, files, generation)
    generation.handle = None
    if copy is None:
        position = generation.position
        lost_bytes = roster.give_up(generation)
        rest = (
            f"{lost_bytes} bytes from byte {position} on were not read and are lost" if lost_bytes else "all was read"
        )
        roster.say(NoticeKind.TRUNCATED, generation, f"{path} was truncated: {rest}", lost_bytes)
    else:
        copy_path, generation.handle = copy
        copied = generation.handle.stat()
        missing_bytes = max(0, generation.size - max(copied.size_bytes, generation.position))
        generation.size, generation.links = max(copied.size_bytes, generation.position), copied.links
        roster.waiting.pop(copied.key, None)
        roster.ignored.pop(copied.key, None)
        roster.move(generation, copy_path, copied.key)
        rest = (
            f"; {missing_bytes} bytes behind byte {generation.size} are in neither and are lost"
            if missing_bytes
            else ""
        )
        kind = NoticeKind.TRUNCATED if missing_bytes else NoticeKind.COPIED
        roster.say(kind, generation, f"{path} was copied to {copy_path} and truncated{rest}", missing_bytes)
    generation.grown_s = roster.chains[generation.chain].changed_s = now_s
    roster.unsaved[generation.id] = generation
    if path == generation.base:
        roster.add(roster.chains[generation.chain].after(generation, path, handle, found, now_s)).observe(now_s)
    else:
        roster.waiting[found.key] = Candidate(path, found.key, handle, found, True, now_s)


def _find_copy(roster: Roster, files: Files, generation: Generation) -> tuple[str, Handle] | None:
    """The largest other file beside it that holds what was read of it, and its path.

    Copies that were seen before, and files that wait to be judged, may have lost their names; they are still open.
    """
    waiting = [(candidate.path, candidate.handle) for candidate in roster.waiting.values()]
    waiting += [(copy.path, copy.handle) for copy in roster.ignored.values() if copy.handle is not None]
    best: tuple[str, Handle] | None = None
    best_bytes = 0
    for path, handle in [*waiting, *_others(roster, files, generation)]:
        size = _copied_bytes(generation, path, handle)
        if size > best_bytes:
            if best is not None and best not in waiting:
                best[1].close()
            best, best_bytes = (path, handle), size
        elif (path, handle) not in waiting:
            handle.close()
    return best


def _copied_bytes(generation: Generation, path: str, handle: Handle) -> int:
    """The size of a file that holds what was read of the generation; 0 for any other, and for one not readable."""
    # A few bytes are alike in many logs; a rotated name beside them is evidence enough.
    told = len(generation.head) >= SEAM_BYTES or rotation_age(path, generation.base) is not None
    try:
        size = handle.stat().size_bytes
        return size if told and size >= generation.position and generation.continued_in(handle) else 0
    except OSError:
        return 0


def _others(roster: Roster, files: Files, generation: Generation) -> Iterator[tuple[str, Handle]]:
    """Every file in the folder that belongs to no chain and is not open anyway."""
    folder = split(generation.path)[0]
    pinned = {key for key, copy in roster.ignored.items() if copy.handle is not None}
    try:
        names = files.list(folder or "/")
    except OSError:
        return
    for name, _ in names:
        path = join(folder, name)
        try:
            handle = files.open(path)
            key = handle.stat().key
        except OSError:
            continue
        if key in roster.by_key or key in roster.waiting or key in pinned:
            handle.close()
        else:
            yield path, handle
