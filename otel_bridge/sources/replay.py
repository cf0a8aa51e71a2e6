"""Finished files: which of them are one log, in which order, and their bytes, packed or not."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from otel_bridge.errors import SourceError
from otel_bridge.sources.chain import rotation_age
from otel_bridge.sources.files import FileKey, Files, Handle, LocalFiles, NotRegularError, is_file, is_folder, reason
from otel_bridge.sources.foreign import LOOK_BYTES, foreign_form
from otel_bridge.sources.names import is_log, join, rotations, split, uncompressed
from otel_bridge.sources.packed import GZIP_MAGIC, DamagedGzipError, PackedHandle
from otel_bridge.sources.succession import Glimpse, continues, glimpse

BLOCK_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class FileChain:
    """The files of one log, oldest first. `name` is the path of its newest part."""

    name: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    path: str
    seen: Glimpse


def open_log(path: str, files: Files | None = None) -> Handle:
    """Open a finished log, unpacking `.gz` on the way (known by its first bytes, not by its name).

    Raises SourceError, naming the path, when it is missing, not a regular file, not readable, or an archive.
    """
    try:
        handle = (LocalFiles() if files is None else files).open(path)
        try:
            is_packed = handle.pread(2, 0) == GZIP_MAGIC
            log = PackedHandle(handle) if is_packed else handle
            with contextlib.suppress(DamagedGzipError):  # whoever reads it is told
                if form := foreign_form(path, log.pread(LOOK_BYTES, 0), is_packed=is_packed):
                    raise SourceError(f"{path} is {form[0]}", form[1])
        except (OSError, SourceError):
            handle.close()
            raise
        return log
    except FileNotFoundError:
        raise SourceError(f"no such file: {path}", "check the path") from None
    except NotRegularError:
        raise SourceError(f"not a regular file: {path}", "a pipe can be read as `-`") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SourceError(f"{path} is a loop of symbolic links", "name the file that it should lead to") from None
        raise SourceError(f"cannot read {path}: {reason(error)}", "check its permissions") from None


def read_blocks(path: str, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The bytes of a finished log in blocks, unpacked.

    Raises SourceError when it cannot be read; a damaged or truncated `.gz` gives out what can be unpacked first.
    """
    handle = open_log(path)
    offset = 0
    try:
        while data := handle.pread(block_bytes, offset):
            offset += len(data)
            yield data
    except DamagedGzipError as error:
        message = f"{path} is damaged after {offset} unpacked bytes ({error})"
        raise SourceError(message, "what came before was read") from None
    except OSError as error:
        raise SourceError(f"cannot read {path} beyond byte {offset}: {reason(error)}") from None
    finally:
        handle.close()


def refuse(error: SourceError) -> None:
    """What to do with a file that cannot be read where all are needed: raises the error."""
    raise error


def order_files(
    paths: Iterable[str],
    unreadable: Callable[[SourceError], None] = refuse,
    copy: Callable[[str], None] | None = None,
) -> list[FileChain]:
    """Put finished files together into logs, each oldest first, in the order in which the logs began.

    A folder stands for the logs in it. A file given twice, also by another name, counts once. Names say which files may
    be parts of one log, the times and sessions inside decide: `debug-mcp-server-1231.log` may be process 1231's log or
    the first rotation of process 123's. Raises SourceError for a path that is not there; `unreadable` is told of a file
    that is there and left out, because nothing of it can be read, `copy` in a line of one that is left out because it
    holds what another one does, packed or not: the same size, and the same first and last 64 kB, with times in them.
    Without `copy` none is left out.
    """
    members = _members(paths, unreadable, copy)
    logs: dict[str, list[_Member]] = {}
    # A log whose newest file was not given stands under the name of the newest that was.
    stands_for: dict[str, str] = {}
    for member in sorted(members, key=lambda member: (len(uncompressed(member.path)), member.path)):
        plain = uncompressed(member.path)
        bases = [root if root in logs else stands_for.get(root, "") for root in (plain, *_roots(member.path))]
        own = member.path if plain in logs else plain
        base = next((base for base in bases if base and continues(member.seen, logs[base][0].seen)), own)
        logs.setdefault(base, []).append(member)
        for root in _roots(member.path, likely=True):
            stands_for.setdefault(root, base)
    for base, parts in logs.items():
        parts.sort(key=lambda part: _age(part, base))
    chains = [
        (_began_ms(parts[0].seen), FileChain(parts[-1].path, tuple(part.path for part in parts)))
        for parts in logs.values()
    ]
    return [chain for _, chain in sorted(chains, key=lambda found: (found[0], found[1].name))]


def _members(
    paths: Iterable[str], unreadable: Callable[[SourceError], None], copy: Callable[[str], None] | None
) -> list[_Member]:
    seen: set[FileKey] = set()
    originals: dict[tuple[int, str], str] = {}
    members = []
    for path in _expanded(paths):
        try:
            handle = open_log(path)
        except SourceError as error:
            if not is_file(path):
                raise
            unreadable(error)
            continue
        try:
            key = handle.stat().key
            if key in seen:
                continue
            seen.add(key)
            member = _Member(path, glimpse(handle))
            content = member.seen.size_bytes, member.seen.content_hash
            original = path if member.seen.first_ms is None else originals.setdefault(content, path)
            if copy is not None and original != path:
                copy(f"{path} holds the same as {original} (size and both ends): it is read once")
                continue
            members.append(member)
        except DamagedGzipError as error:
            unreadable(SourceError(f"{path} is damaged ({error})"))
        except OSError as error:
            unreadable(SourceError(f"cannot read {path}: {reason(error)}", "check its permissions"))
        finally:
            handle.close()
    return members


def _expanded(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if not path:  # not the current folder: most likely a variable that is not set
            raise SourceError("a path is empty", "name a log, or a folder of logs")
        if not is_folder(path):
            yield path
            continue
        try:
            names = sorted(
                name.name for name in LocalFiles().list(path) if is_log(name.name) and is_file(join(path, name.name))
            )
        except OSError as error:
            raise SourceError(f"cannot list {path}: {reason(error)}", "check its permissions") from None
        if not names:
            raise SourceError(f"no log in {path}", "name the folder that holds it: folders below are not searched")
        yield from (join(path, name) for name in names)


def _roots(path: str, *, likely: bool = False) -> Sequence[str]:
    """The logs that a file can be a part of; only `likely` ones where there is no such log to compare it with.

    winston keeps three files, so a high number behind a name is more likely a process id.
    """
    folder, name = split(path)
    return [join(folder, root) for root, age in rotations(name) if not likely or not 9 < age < 10_000]


def _age(part: _Member, base: str) -> tuple[int, int]:
    return _began_ms(part.seen), -(rotation_age(part.path, base) or 0)


def _began_ms(seen: Glimpse) -> int:
    return seen.modified_ms if seen.first_ms is None else seen.first_ms
