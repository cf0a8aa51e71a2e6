"""Which file is which: what is remembered of a file so that it is found again, and never mistaken for another.

Neither the inode alone nor the first bytes alone identify a log. Inode numbers are recycled at once (174 rotations of
a real winston used three numbers), and logs can begin alike (vector #25079, #17240; opentelemetry-collector-contrib
#19765, #46496). So both are kept, and the bytes just before the offset as well: the head says that it is this file, the
seam that the offset means in it what it meant before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b

from otel_bridge.sources.files import FileKey, Handle

HEAD_BYTES = 1024
SEAM_BYTES = 256


def digest(data: bytes) -> str:
    """A short hash of bytes, as hexadecimal text."""
    return blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far one generation of a log was delivered, and how to find it again.

    `offset_bytes` is the end of the delivered prefix. `head_hash` covers the first `head_bytes`, `seam_hash` the 256
    bytes before the offset. `order` is the generation's place in its chain, `base` the path at which the chain's newest
    file appears, `path` where this one was last. `size_bytes` is the largest size seen: what is missing at the next
    start can then be said in bytes. `last_entry_ms` is the Unix time of the last entry that was delivered from it, or
    None. `ended` means that nothing more is expected: if such a file is gone later, nothing is lost.
    """

    chain: str
    order: int
    base: str
    path: str
    device: int
    inode: int
    head_bytes: int
    head_hash: str
    offset_bytes: int
    seam_hash: str
    size_bytes: int
    last_entry_ms: int | None = None
    ended: bool = False

    @property
    def generation(self) -> str:
        """The id that `Chunk.generation` carries."""
        return generation_id(self.chain, self.order)

    @property
    def key(self) -> FileKey:
        """Device and inode."""
        return FileKey(self.device, self.inode)

    def to_json(self) -> dict[str, object]:
        """The checkpoint as plain values that JSON can carry."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Checkpoint:
        """The checkpoint that `to_json` gave. Raises ValueError when a value is missing or of another type."""

        def text(name: str) -> str:
            value = values.get(name)
            if not isinstance(value, str):
                raise ValueError(f"checkpoint without a usable `{name}`")
            return value

        def number(name: str) -> int:
            value = values.get(name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"checkpoint without a usable `{name}`")
            return value

        return cls(
            chain=text("chain"),
            order=number("order"),
            base=text("base"),
            path=text("path"),
            device=number("device"),
            inode=number("inode"),
            head_bytes=number("head_bytes"),
            head_hash=text("head_hash"),
            offset_bytes=number("offset_bytes"),
            seam_hash=text("seam_hash"),
            size_bytes=number("size_bytes"),
            last_entry_ms=None if values.get("last_entry_ms") is None else number("last_entry_ms"),
            ended=values.get("ended") is True,
        )


def generation_id(chain: str, order: int) -> str:
    """The id of one generation: unique over all chains, the same after a restart."""
    return f"{chain}#{order}"


def seam_start(offset_bytes: int) -> int:
    """Where the seam of an offset begins."""
    return max(0, offset_bytes - SEAM_BYTES)


def holds(handle: Handle, checkpoint: Checkpoint) -> bool:
    """Whether an open file has the checkpoint's head and seam, so that its offset means the same place in it.

    Raises OSError when reading fails.
    """
    start = seam_start(checkpoint.offset_bytes)
    seam = handle.pread(checkpoint.offset_bytes - start, start)
    if start + len(seam) != checkpoint.offset_bytes or digest(seam) != checkpoint.seam_hash:
        return False
    head = handle.pread(checkpoint.head_bytes, 0)
    return len(head) == checkpoint.head_bytes and digest(head) == checkpoint.head_hash
