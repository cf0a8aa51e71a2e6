"""Finding the files of the checkpoints again, through whatever rotation happened while nobody looked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from otel_bridge.sources.chain import Chain, rotation_age
from otel_bridge.sources.files import FileKey, Files, Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.identity import HEAD_BYTES, SEAM_BYTES, Checkpoint, digest, holds
from otel_bridge.sources.names import COMPRESSED, join, split
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.packed import GZIP_MAGIC, PackedHandle
from otel_bridge.sources.roster import Roster
from otel_bridge.sources.succession import glimpse, times_ms

_LOOK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class _There:
    """A file that lies in one of the folders now."""

    path: str
    key: FileKey


class Restored(NamedTuple):
    """Which checkpoints could not be restored: those whose unread rest is nowhere, and those to be tried again, because
    their file or folder is there but must not be read now."""

    missing: list[Checkpoint]
    denied: list[Checkpoint]


def restore(
    roster: Roster, files: Files, checkpoints: Iterable[Checkpoint], folders: Iterable[str], now_s: float
) -> Restored:
    """Put the chains of the checkpoints together again.

    A file is the one of a checkpoint when device, inode, head and seam agree; failing that, when another file beside it
    holds the head and the seam (a copy, a packed rotated file, a device that has another number after a boot).
    """
    ordered = sorted(checkpoints, key=lambda checkpoint: (checkpoint.chain, checkpoint.order))
    there, denied_folders = _list(files, {*folders, *(split(checkpoint.path)[0] for checkpoint in ordered)})
    by_key = {found.key: found for found in there if found.key not in roster.by_key}
    restored = Restored([], [])
    open_files: dict[str, tuple[_There, Handle]] = {}
    for checkpoint in ordered:
        exact = by_key.get(checkpoint.key) if checkpoint.head_bytes else None
        try:
            if exact is not None and (handle := _open_if_held(files, exact.path, checkpoint)) is not None:
                open_files[checkpoint.generation] = (exact, handle)
                del by_key[checkpoint.key]
        except PermissionError:
            restored.denied.append(checkpoint)
    newest = {checkpoint.chain: checkpoint.order for checkpoint in ordered}
    for checkpoint in ordered:
        if checkpoint.generation in open_files or checkpoint in restored.denied:
            continue
        if checkpoint.ended or (checkpoint.head_bytes == 0 and checkpoint.key in by_key):
            # Of an empty file nothing is known by which to tell it from another with its inode; it is found anew.
            roster.gone.append(checkpoint.generation)
        elif (copy := _find_copy(files, checkpoint, by_key.values())) is not None:
            open_files[checkpoint.generation] = copy
            del by_key[copy[0].key]
        elif split(checkpoint.path)[0] in denied_folders:
            restored.denied.append(checkpoint)
        elif checkpoint.offset_bytes >= checkpoint.size_bytes and newest[checkpoint.chain] > checkpoint.order:
            roster.gone.append(checkpoint.generation)
            roster.notices.append(_rotated_out(checkpoint))
        else:
            restored.missing.append(checkpoint)
            roster.gone.append(checkpoint.generation)
    for checkpoint in ordered:
        chain = roster.chains.get(checkpoint.chain) or roster.add_chain(Chain(checkpoint.chain, checkpoint.base))
        chain.remember(checkpoint.order, given_out=checkpoint.offset_bytes > 0)
        if checkpoint.generation in open_files:
            found, handle = open_files[checkpoint.generation]
            generation = Generation(chain.id, chain.base, checkpoint.order, found.path, handle, handle.stat(), now_s)
            generation.resume(checkpoint)
            chain.take(generation)
            roster.add(generation)
    _take_packed(roster, files, ordered, by_key.values(), now_s)
    return restored


def gap_notices(roster: Roster, missing: Iterable[Checkpoint]) -> list[Notice]:
    """What to say of checkpoints whose unread rest is nowhere: a notice for each hole, which can be several files."""
    holes: dict[tuple[str, Generation | None], list[Checkpoint]] = {}
    for checkpoint in missing:
        there = (found for found in roster.chains[checkpoint.chain].generations if found.handle)
        newer = next((found for found in there if found.order > checkpoint.order), None)
        holes.setdefault((checkpoint.chain, newer), []).append(checkpoint)
    return [_gap_notice(checkpoints, newer) for (_, newer), checkpoints in holes.items()]


def _gap_notice(missing: Sequence[Checkpoint], newer: Generation | None) -> Notice:
    oldest, more = missing[0], len(missing) - 1
    try:
        after_ms = None if newer is None or newer.handle is None else glimpse(newer.handle).first_ms
    except OSError:
        after_ms = None
    lost_bytes = sum(max(0, checkpoint.size_bytes - checkpoint.offset_bytes) for checkpoint in missing)
    newer_files = f"{more} newer file{'s' if more > 1 else ''}"
    files = f"{oldest.path} and {newer_files} of its log are" if more else f"{oldest.path} is"
    return Notice(
        kind=NoticeKind.GAP,
        path=oldest.path,
        text=(
            f"{files} gone: what followed byte {oldest.offset_bytes} (at least {lost_bytes} bytes) was not read and is "
            f"lost; it was rotated out, truncated or deleted while nobody followed it"
        ),
        chain=oldest.chain,
        offset_bytes=oldest.offset_bytes,
        lost_bytes=lost_bytes,
        at_least=True,
        before_ms=oldest.last_entry_ms,
        after_ms=after_ms,
    )


def _rotated_out(checkpoint: Checkpoint) -> Notice:
    """What to say of a file that the log had left, and of which nothing is known that was not delivered."""
    text = (
        f"{checkpoint.path} was rotated out while nobody followed it; its {checkpoint.size_bytes} bytes were delivered"
    )
    return Notice(NoticeKind.ROTATED, checkpoint.path, text, checkpoint.chain)


def _list(files: Files, folders: Iterable[str]) -> tuple[list[_There], set[str]]:
    """The files in the folders, and the folders that must not be listed."""
    there = []
    denied = set()
    for folder in sorted(folders):
        try:
            names = files.list(folder or "/")
        except PermissionError:
            denied.add(folder)
            continue
        except OSError:
            continue
        for name, _ in names:
            path = join(folder, name)
            try:
                there.append(_There(path, files.stat(path).key))
            except PermissionError:
                denied.add(folder)
            except OSError:
                continue  # a link to nothing, or gone meanwhile
    return there, denied


def _open(files: Files, path: str) -> Handle:
    handle = files.open(path)
    return PackedHandle(handle) if handle.pread(len(GZIP_MAGIC), 0) == GZIP_MAGIC else handle


def _open_if_held(files: Files, path: str, checkpoint: Checkpoint) -> Handle | None:
    """The open file if it holds the checkpoint's head and seam. Raises PermissionError when it must not be read."""
    try:
        handle = _open(files, path)
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        if holds(handle, checkpoint):
            return handle
    except OSError:
        pass  # unreadable or damaged: not what was read before
    handle.close()
    return None


def _find_copy(files: Files, checkpoint: Checkpoint, there: Iterable[_There]) -> tuple[_There, Handle] | None:
    """The largest file beside it that holds the checkpoint's head and seam, open."""
    folder = split(checkpoint.path)[0]
    best: tuple[_There, Handle] | None = None
    best_bytes = -1
    for found in there:
        # A few bytes are alike in many logs; a rotated name beside them is evidence enough.
        told = checkpoint.head_bytes >= SEAM_BYTES or rotation_age(found.path, checkpoint.base) is not None
        if split(found.path)[0] != folder or not told or checkpoint.head_bytes == 0:
            continue
        try:
            handle = _open_if_held(files, found.path, checkpoint)
            size = -1 if handle is None else handle.stat().size_bytes
        except OSError:
            continue
        if handle is not None and size > best_bytes:
            if best is not None:
                best[1].close()
            best, best_bytes = (found, handle), size
        elif handle is not None:
            handle.close()
    return best


def _take_packed(
    roster: Roster, files: Files, checkpoints: Sequence[Checkpoint], there: Iterable[_There], now_s: float
) -> None:
    """Take in what was written, rotated and packed while nobody followed: packed parts newer than all that is known.

    What a packed part repeats of a known file is known by its head (opentelemetry-collector-contrib #40523).
    """
    for path, chain, known in _packed_parts(roster, checkpoints, there):
        newest_ms = max((checkpoint.last_entry_ms or 0 for checkpoint in known), default=0)
        try:
            handle = _open(files, path)
            first_ms = min(times_ms(handle.pread(_LOOK_BYTES, 0)), default=0)
            head = handle.pread(HEAD_BYTES, 0)
            repeated = any(digest(head[: other.head_bytes]) == other.head_hash for other in known if other.head_bytes)
            if newest_ms and first_ms > newest_ms and not repeated:
                roster.add(chain.place(path, handle, handle.stat(), now_s))
            else:
                handle.close()
        except OSError:
            continue


def _packed_parts(
    roster: Roster, checkpoints: Sequence[Checkpoint], there: Iterable[_There]
) -> Iterator[tuple[str, Chain, list[Checkpoint]]]:
    """The packed files that by their names are parts of a restored chain, oldest first."""
    packed = [found.path for found in there if found.path.endswith(COMPRESSED)]
    for chain in roster.chains.values() if packed else ():
        known = [checkpoint for checkpoint in checkpoints if checkpoint.chain == chain.id]
        aged = [(age, path) for path in packed if (age := rotation_age(path, chain.base)) is not None]
        yield from ((path, chain, known) for _, path in sorted(aged, reverse=True))
