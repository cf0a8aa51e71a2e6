"""Who is who now: all chains, their generations, and the files that belong to none."""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_bridge.sources.chain import Chain, chain_id
from otel_bridge.sources.files import FileKey, Files, FileStat, Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.notices import Notice, NoticeKind

_MAX_EMPTY_CHAINS = 1_000
"""So many chains are kept, so that one whose files were all deleted goes on when its name is there again."""

_MAX_PINNED = 16


@dataclass(slots=True)
class Candidate:
    """An open file that belongs to no chain yet; since when it waits for more evidence, and whether it did before.

    `early` is true for what the first look found: it may have been rotated before. `not_of` are the chains that it was
    found to be no part of.
    """

    path: str
    key: FileKey
    handle: Handle
    found: FileStat
    own: bool
    since_s: float
    early: bool = False
    waited: bool = False
    not_of: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file that is not read, because its bytes are known (a copy) or it is not for us; `found` is what it was then.

    The newest copies stay open: once their original is cut, they alone hold what was not read of it.
    """

    path: str
    found: FileStat
    handle: Handle | None

    def is_as_it_was(self, files: Files) -> bool:
        """Whether the file has not changed since. Raises OSError as the system says."""
        now = files.stat(self.path) if self.handle is None else self.handle.stat()
        then = self.found
        return (now.key, now.size_bytes, now.modified_ns) == (then.key, then.size_bytes, then.modified_ns)


class Roster:
    """The chains, which file belongs to which, and what is to be said about them.

    `unsaved` holds the generations that the state does not know as they are now, `gone` the ids of those to be deleted.
    """

    def __init__(self) -> None:
        self.chains: dict[str, Chain] = {}
        self.by_base: dict[str, Chain] = {}
        self.by_key: dict[FileKey, Generation] = {}
        self.by_id: dict[str, Generation] = {}
        self.waiting: dict[FileKey, Candidate] = {}
        self.ignored: dict[FileKey, Ignored] = {}
        self.unsaved: dict[str, Generation] = {}
        self.gone: list[str] = []
        self.notices: list[Notice] = []

    def say(self, kind: NoticeKind, generation: Generation, text: str, lost_bytes: int = 0) -> None:
        """Note what happened to a generation; a loss begins where reading stopped."""
        self.notices.append(Notice(kind, generation.path, text, generation.chain, generation.position, lost_bytes))

    def add_chain(self, chain: Chain) -> Chain:
        """Take in a chain."""
        self.chains[chain.id] = self.by_base[chain.base] = chain
        return chain

    def new_chain(self, base: str, key: FileKey) -> Chain:
        """Begin a chain whose newest file appears at `base`."""
        return self.add_chain(Chain(chain_id(base, key, frozenset(self.chains)), base))

    def add(self, generation: Generation) -> Generation:
        """Take in a generation of a known chain; from now on its file belongs to it."""
        self.by_key[generation.key] = self.by_id[generation.id] = self.unsaved[generation.id] = generation
        return generation

    def ignore(self, path: str, found: FileStat, handle: Handle) -> None:
        """Do not read a file for as long as it stays as it is."""
        pinned = [key for key, ignored in self.ignored.items() if ignored.handle is not None]
        if len(pinned) >= _MAX_PINNED:
            oldest = self.ignored[pinned[0]]
            if oldest.handle is not None:
                oldest.handle.close()
            self.ignored[pinned[0]] = Ignored(oldest.path, oldest.found, None)
        self.ignored[found.key] = Ignored(path, found, handle)

    def stop_ignoring(self, key: FileKey) -> None:
        """Judge a file anew when it is seen next."""
        ignored = self.ignored.pop(key, None)
        if ignored is not None and ignored.handle is not None:
            ignored.handle.close()

    def move(self, generation: Generation, path: str, key: FileKey) -> None:
        """Say that a generation's bytes now lie in another file."""
        if self.by_key.get(generation.key) is generation:
            del self.by_key[generation.key]
        generation.path, generation.key, generation.absent_since_s = path, key, None
        self.by_key[key] = self.unsaved[generation.id] = generation

    def named(self, generation: Generation, path: str) -> None:
        """Note where a generation's file lies now."""
        generation.absent_since_s = None
        if generation.path != path:
            generation.path = path
            self.unsaved[generation.id] = generation

    def give_up(self, generation: Generation) -> int:
        """Close a generation for good and take its rest for lost; how many bytes that are."""
        lost_bytes = generation.give_up()
        # Once closed, its inode number can belong to another file at once.
        if self.by_key.get(generation.key) is generation:
            del self.by_key[generation.key]
        self.unsaved[generation.id] = generation
        return lost_bytes

    def forget(self, generation: Generation) -> None:
        """Drop a generation that is delivered and whose file is gone."""
        generation.close()
        chain = self.chains[generation.chain]
        chain.forget(generation)
        if not chain.generations and len(self.chains) > _MAX_EMPTY_CHAINS:
            del self.chains[chain.id], self.by_base[chain.base]
        del self.by_id[generation.id]
        self.unsaved.pop(generation.id, None)
        if self.by_key.get(generation.key) is generation:
            del self.by_key[generation.key]
        self.gone.append(generation.id)
