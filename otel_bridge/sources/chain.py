"""A chain: the generations of one log, oldest first, whatever their files are called now."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from otel_bridge.sources.files import FileKey, FileStat, Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.names import rotations, split

_ORDER_STEP = 1024
"""Between the orders of two neighbours, so that a file which a listing missed can be put between them later."""


def rotation_index(path: str, base: str) -> int | None:
    """How old a part of the log `base` a file is by its name: 0 for the base itself, None when it is no part."""
    if path == base:
        return 0
    folder, name = split(path)
    base_folder, base_name = split(base)
    if folder != base_folder:
        return None
    return next((index for root, index in rotations(name) if root == base_name), None)


class Chain:
    """The generations of one log. `base` is the path at which its newest file appears."""

    def __init__(self, chain: str, base: str) -> None:
        self.id = chain
        self.base = base
        self.generations: list[Generation] = []
        self.newest_given_order = -1

    def place(self, path: str, handle: Handle, found: FileStat, now_s: float) -> Generation:
        """Add a file as the newest generation, or before those that by their names are newer than it."""
        index = rotation_index(path, self.base)
        position = len(self.generations)
        while position and index is not None:
            neighbour = rotation_index(self.generations[position - 1].path, self.base)
            if neighbour is None or neighbour >= index or self.generations[position - 1].over:
                break
            position -= 1
        return self._insert(position, path, handle, found, now_s)

    def after(self, generation: Generation, handle: Handle, found: FileStat, now_s: float) -> Generation:
        """Add what a truncated file holds now as the generation that follows."""
        return self._insert(self.generations.index(generation) + 1, generation.path, handle, found, now_s)

    def _insert(self, position: int, path: str, handle: Handle, found: FileStat, now_s: float) -> Generation:
        before = self.generations[position - 1].order if position else None
        after = self.generations[position].order if position < len(self.generations) else None
        if after is None:
            order = max(self.newest_given_order, -1 if before is None else before) + _ORDER_STEP
        else:
            order = (after - _ORDER_STEP if before is None else before + after) // (1 if before is None else 2)
        generation = Generation(self.id, self.base, order, path, handle, found, now_s)
        self.generations.insert(position, generation)
        return generation

    def superseded(self, generation: Generation) -> bool:
        """Whether the log goes on elsewhere: in a newer generation, or nowhere, the file having lost its name."""
        return generation is not self.generations[-1] or generation.links == 0

    def unread(self) -> Iterator[Generation]:
        """The generations with something to give out, oldest first."""
        return (
            generation for generation in self.generations if generation.handle is not None and generation.unread > 0
        )


def chain_id(base: str, key: FileKey, taken: frozenset[str]) -> str:
    """A new chain's id: the name of its log and a hash of where and what it was first, unlike all in `taken`."""
    for attempt in range(len(taken) + 1):
        seed = f"{base}\0{key.device}\0{key.inode}\0{attempt}".encode("utf-8", "surrogateescape")
        found = f"{split(base)[1]}-{blake2b(seed, digest_size=4).hexdigest()}"
        if found not in taken:
            return found
    raise AssertionError("one attempt more than there are ids")
