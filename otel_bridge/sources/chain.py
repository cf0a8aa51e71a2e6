"""A chain: the generations of one log, oldest first, whatever their files are called now."""

from __future__ import annotations

from bisect import insort
from hashlib import blake2b

from otel_bridge.sources.files import FileKey, FileStat, Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.names import rotations, split
from otel_bridge.sources.succession import began_ms

_ORDER_STEP = 1 << 20
"""Between the orders of two neighbours, so that a file which a listing missed can be put between them later."""


def rotation_age(path: str, base: str) -> int | None:
    """How old a part of the log `base` a file is by its name: 0 for the base itself, None when it is no part."""
    if path == base:
        return 0
    folder, name = split(path)
    base_folder, base_name = split(base)
    if folder != base_folder:
        return None
    return next((age for root, age in rotations(name) if root == base_name), None)


class Chain:
    """The generations of one log. `base` is the path at which its newest file appears."""

    def __init__(self, chain: str, base: str) -> None:
        self.id = chain
        self.base = base
        self.generations: list[Generation] = []
        self.newest_order = 0
        self.newest_given_order = 0
        self._forgotten_order = 0
        self.began_s = float("-inf")
        """When its first file was found (monotonic)."""
        self.changed_s = float("-inf")
        """When the file at the base was found to be another one, or truncated, last (monotonic)."""

    def place(self, path: str, handle: Handle, found: FileStat, now_s: float) -> Generation:
        """Add a file as the newest generation, or before those that are newer than it.

        The names tell, where both have one; else the times inside. Raises OSError when the file cannot be read.
        """
        if not self.generations:
            self.began_s = now_s
        elif path == self.base:
            self.changed_s = now_s
        position = len(self.generations)
        while position and self._is_newer(self.generations[position - 1], path, handle):
            position -= 1
        return self._insert(position, path, handle, found, now_s)

    def _is_newer(self, known: Generation, path: str, handle: Handle) -> bool:
        if known.over or known.handle is None:
            return False
        age, known_age = rotation_age(path, self.base), rotation_age(known.path, self.base)
        if known.links and age is not None and known_age is not None:
            return known_age < age
        began, known_began = began_ms(handle), began_ms(known.handle)
        return began is not None and known_began is not None and began < known_began

    def after(self, generation: Generation, path: str, handle: Handle, found: FileStat, now_s: float) -> Generation:
        """Add what a truncated file holds now as the generation that follows."""
        return self._insert(self.generations.index(generation) + 1, path, handle, found, now_s)

    def _insert(self, position: int, path: str, handle: Handle, found: FileStat, now_s: float) -> Generation:
        if position == len(self.generations):
            order = self.newest_order + _ORDER_STEP
            self.newest_order = order
        else:
            before = self.generations[position - 1].order if position else self._forgotten_order
            order = (before + self.generations[position].order) // 2
        generation = Generation(self.id, self.base, order, path, handle, found, now_s)
        self.generations.insert(position, generation)
        return generation

    def take(self, generation: Generation) -> None:
        """Add a generation that a checkpoint knows, where its order says."""
        insort(self.generations, generation, key=lambda known: known.order)

    def remember(self, order: int, *, given_out: bool) -> None:
        """Note that a generation existed, whether its file is still there or not."""
        self.newest_order = max(self.newest_order, order)
        if given_out:
            self.newest_given_order = max(self.newest_given_order, order)

    def forget(self, generation: Generation) -> None:
        """Drop a generation. Its order is not used again."""
        if generation is self.generations[0]:
            self._forgotten_order = generation.order
        self.generations.remove(generation)

    def left(self, generation: Generation) -> bool:
        """Whether the log goes on in a newer generation."""
        return generation is not self.generations[-1]


def chain_id(base: str, key: FileKey, taken: frozenset[str]) -> str:
    """A new chain's id: the name of its log and a hash of where and what it was first, unlike all in `taken`."""
    for attempt in range(len(taken) + 1):
        seed = f"{base}\0{key.device}\0{key.inode}\0{attempt}".encode("utf-8", "surrogateescape")
        found = f"{split(base)[1]}-{blake2b(seed, digest_size=4).hexdigest()}"
        if found not in taken:
            return found
    raise AssertionError("one attempt more than there are ids")
