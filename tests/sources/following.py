"""A follower on real files, with a clock that only the test moves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from otel_bridge.sources import Caps, Checkpoint, Chunk, Follower, Notice, NoticeKind, Only, Start
from otel_bridge.sources.files import FileKey, Files
from tests.sources.world import SESSION, Clock

BEGAN_MS = 1_700_000_000_000


def entry(number: int, pad_bytes: int = 0, session: str = SESSION) -> bytes:
    """A log line with a number, and a time that grows with it by 100 ms."""
    value = {"n": number, "timestamp": BEGAN_MS + 100 * number, "sessionId": session, "pad": "p" * pad_bytes}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def entries(first: int, last: int, pad_bytes: int = 0, session: str = SESSION) -> bytes:
    """Log lines with the numbers from `first` to `last`."""
    return b"".join(entry(number, pad_bytes, session) for number in range(first, last + 1))


def append(path: Path, data: bytes) -> None:
    """Write as a server does: behind what is there."""
    with path.open("ab", 0) as log:
        assert log.write(data) == len(data)


def rotate(path: Path) -> None:
    """Rename as winston does: the second oldest over the oldest, and the log itself to the second oldest's name."""
    one, two = path.with_name(f"{path.stem}1.log"), path.with_name(f"{path.stem}2.log")
    if one.exists():
        one.rename(two)
    path.rename(one)


class Following:
    """A follower and everything that it has given out."""

    def __init__(
        self,
        patterns: Sequence[Path | str] | Callable[[], Sequence[str]],
        checkpoints: Sequence[Checkpoint] = (),
        *,
        start: Start = Start.BEGINNING,
        in_use: Callable[[FileKey], bool | None] = lambda _: False,
        caps: Caps | None = None,
        only: Only | None = None,
        files: Files | None = None,
        unix_s: float = 4_000_000_000.0,
    ) -> None:
        self.clock = Clock()
        self.follower = Follower(
            patterns if callable(patterns) else [str(pattern) for pattern in patterns],
            start=start,
            in_use=in_use,
            caps=caps,
            only=only,
            files=files,
            monotonic_s=self.clock,
            unix_s=lambda: unix_s,
        )
        self.follower.restore(checkpoints)
        self.chunks: list[Chunk] = []
        self.notices: list[Notice] = []
        self._committed = 0

    def look(self, after_s: float = 0.05) -> bool:
        """Look once, some time after the last look."""
        self.clock.now_s += after_s
        found = self.follower.look()
        self.notices += self.follower.notices()
        return found

    def read(self, max_bytes: int = 1 << 20) -> list[Chunk]:
        """Read once; what is given out now."""
        chunks = list(self.follower.read(max_bytes))
        self.chunks += chunks
        self.notices += self.follower.notices()
        return chunks

    def drain(self, after_s: float = 0.05) -> bytes:
        """Look and read until nothing is left; the bytes that are given out, in order."""
        fresh = b""
        self.look(after_s)
        self.look()
        while chunks := self.read():
            fresh += b"".join(chunk.data for chunk in chunks)
            self.look()
        return fresh

    def commit_all(self) -> list[Checkpoint]:
        """Checkpoints for all that was given out, and for what was only found."""
        ends = {chunk.generation: chunk for chunk in self.chunks[self._committed :]}
        self._committed = len(self.chunks)
        saved = {found.generation: found for found in self.follower.unsaved()}
        for generation, chunk in ends.items():
            offset = chunk.start_byte + len(chunk.data)
            saved[generation] = self.follower.checkpoint(generation, offset, ended=chunk.ends_generation)
            if chunk.ends_generation:
                self.follower.release(generation)
        return list(saved.values())

    def kinds(self) -> list[NoticeKind]:
        """What was noticed, in order."""
        return [notice.kind for notice in self.notices]

    def losses(self) -> list[tuple[str, int, int]]:
        """File name, offset and number of bytes of each loss."""
        return [
            (os.path.basename(notice.path), notice.offset_bytes, notice.lost_bytes)  # noqa: PTH119
            for notice in self.notices
            if notice.is_loss
        ]

    def close(self) -> None:
        """Close every descriptor."""
        self.follower.close()
