"""What reading gives out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from otel_bridge.sources.files import FileKey


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of one generation, directly after those given out before.

    `generation` names the bytes of one file between two truncations, unique over all chains and kept over a restart.
    Half a line at the end of `data` is completed by the generation's next chunk, so lines are split per generation, not
    per chain. `start_byte` is the offset of `data[0]` in the file. `ends_generation` says that no more is expected:
    half a line that is left counts if it parses, else it is reported. (If a second writer appends after all, more
    chunks follow, and another end.) `late` marks bytes of an older generation that were written after a newer one was
    begun.
    """

    chain: str
    generation: str
    path: str
    start_byte: int
    data: bytes
    ends_generation: bool = False
    late: bool = False


class ChainStatistics(NamedTuple):
    """One chain: its newest path, bytes known but not given out, and the files it consists of, oldest first."""

    chain: str
    path: str
    lag_bytes: int
    files: tuple[FileKey, ...]


class Statistics(NamedTuple):
    """What is followed now. `held_*` counts files that have no name any more and are kept only by us."""

    files: int
    lag_bytes: int
    held_files: int
    held_bytes: int
    chains: tuple[ChainStatistics, ...]
