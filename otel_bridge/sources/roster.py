"""Who is who now: all chains, their generations, and the files that belong to none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from otel_bridge.sources.chain import Chain, chain_id
from otel_bridge.sources.files import FileKey, FileStat, Handle
from otel_bridge.sources.generation import Generation


@dataclass(slots=True)
class Candidate:
    """An open file that belongs to no chain yet. `looks` counts for how many looks it waited for more evidence."""

    path: str
    key: FileKey
    handle: Handle
    found: FileStat
    own: bool
    looks: int = 0


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file that is not read because its bytes are known: a copy. `size_bytes` is how much of it is."""

    path: str
    size_bytes: int


class Roster:
    """The chains and which file belongs to which."""

    def __init__(self) -> None:
        self.chains: dict[str, Chain] = {}
        self.by_base: dict[str, Chain] = {}
        self.by_key: dict[FileKey, Generation] = {}
        self.by_id: dict[str, Generation] = {}
        self.waiting: dict[FileKey, Candidate] = {}
        self.ignored: dict[FileKey, Ignored] = {}

    def generations(self) -> Iterator[Generation]:
        """All generations, chain by chain, oldest first."""
        for chain in self.chains.values():
            yield from chain.generations

    def new_chain(self, base: str, key: FileKey) -> Chain:
        """Begin a chain whose newest file appears at `base`."""
        return self.add_chain(Chain(chain_id(base, key, frozenset(self.chains)), base))

    def add_chain(self, chain: Chain) -> Chain:
        """Take in a chain that was made elsewhere."""
        self.chains[chain.id] = self.by_base[chain.base] = chain
        return chain

    def add(self, generation: Generation) -> Generation:
        """Take in a generation of a known chain; from now on its file belongs to it."""
        self.by_key[generation.key] = self.by_id[generation.id] = generation
        return generation

    def move(self, generation: Generation, key: FileKey) -> None:
        """Say that a generation's bytes now lie in another file."""
        if self.by_key.get(generation.key) is generation:
            del self.by_key[generation.key]
        generation.key = key
        self.by_key[key] = generation

    def forget(self, generation: Generation) -> None:
        """Drop a generation that is delivered and whose file is gone."""
        generation.close()
        self.chains[generation.chain].generations.remove(generation)
        del self.by_id[generation.id]
        if self.by_key.get(generation.key) is generation:
            del self.by_key[generation.key]
