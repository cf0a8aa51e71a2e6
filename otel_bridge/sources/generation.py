"""One generation: the bytes of one file between two truncations, and how far they were given out."""

from __future__ import annotations

from otel_bridge.sources.files import FileKey, FileStat, Handle
from otel_bridge.sources.identity import HEAD_BYTES, SEAM_BYTES, Checkpoint, digest, generation_id, seam_start


class ChangedError(Exception):
    """The file does not continue what was read from it: it was truncated or rewritten."""


class Generation:
    """An open file that is read from front to back.

    `position` is the end of what was given out, `size` the largest size seen (both bytes). `head` and the seam before
    `position` are kept as bytes, so that every look and every read can tell whether it still is the same content.
    """

    def __init__(
        self, chain: str, base: str, order: int, path: str, handle: Handle, found: FileStat, now_s: float
    ) -> None:
        self.chain = chain
        self.base = base
        self.order = order
        self.id = generation_id(chain, order)
        self.path = path
        self.key: FileKey = found.key
        self.handle: Handle | None = handle
        self.position = 0
        self.size = 0
        self.links = found.links
        self.head = b""
        self.grown_s = now_s
        self.absent_since_s: float | None = None
        self.given_out = False
        """Whether any byte was given out, now or before a restart."""
        self.over = False
        """Nothing can follow any more (truncated, given up): the end is due without waiting."""
        self.end_given = False
        self.released = False
        self.last_entry_ms: int | None = None
        self.saved: tuple[int, int, str] | None = None
        self.delivered = 0
        self._seam = b""

    @property
    def unread(self) -> int:
        """Bytes known to exist that were not given out."""
        return self.size - self.position

    def start_at(self, position: int) -> None:
        """Give nothing out before this offset. Raises OSError when the seam before it cannot be read."""
        assert self.handle is not None
        start = seam_start(position)
        self._seam = self.handle.pread(position - start, start)
        self.position = self.delivered = position

    def observe(self, now_s: float) -> bool:
        """Ask the file for its size; whether it has grown. Raises ChangedError, and OSError as the system says."""
        assert self.handle is not None
        found = self.handle.stat()
        self.links = found.links
        if found.size_bytes < self.size:
            raise ChangedError
        if found.size_bytes == self.size:
            return False
        head = self.handle.pread(HEAD_BYTES, 0)
        if not head.startswith(self.head):
            raise ChangedError
        if self._seam and self.handle.pread(len(self._seam), self.position - len(self._seam)) != self._seam:
            raise ChangedError
        self.head = head
        self.size = found.size_bytes
        self.grown_s = now_s
        return True

    def read(self, max_bytes: int) -> tuple[int, bytes]:
        """The next bytes and their offset; nothing at the end. Raises ChangedError, and OSError as the system says."""
        assert self.handle is not None
        while True:
            # The seam is read along with what follows it: one call, and no moment between the check and the bytes.
            known = self._seam if self.position else self.head
            data = self.handle.pread(max(max_bytes, HEAD_BYTES) + len(self._seam), self.position - len(self._seam))
            if not data.startswith(known):
                raise ChangedError
            start = self.position
            fresh = data[len(self._seam) :]
            if not fresh:
                return start, b""
            if start == 0:
                self.head = data[:HEAD_BYTES]
            self._seam = data[-SEAM_BYTES:]
            self.position += len(fresh)
            self.size = max(self.size, self.position)
            if self.given_out:
                return start, fresh
            # A writer that does not append leaves a hole in front after copytruncate: zeros that nobody wrote.
            written = fresh.lstrip(b"\0")
            if written:
                self.given_out = True
                return start + len(fresh) - len(written), written

    def checkpoint(self, offset_bytes: int, last_entry_ms: int | None, ended: bool) -> Checkpoint:
        """The checkpoint for an offset up to which everything was delivered."""
        if last_entry_ms is not None:
            self.last_entry_ms = last_entry_ms
        self.delivered = offset_bytes
        return self.as_saved(ended)

    def as_saved(self, ended: bool) -> Checkpoint:
        """The checkpoint for what was delivered last."""
        self.saved = (self.delivered, self.size, self.path)
        return Checkpoint(
            chain=self.chain,
            order=self.order,
            base=self.base,
            path=self.path,
            device=self.key.device,
            inode=self.key.inode,
            head_bytes=len(self.head),
            head_hash=digest(self.head),
            offset_bytes=self.delivered,
            seam_hash=digest(self._seam_before(self.delivered)),
            size_bytes=self.size,
            last_entry_ms=self.last_entry_ms,
            ended=ended,
        )

    def _seam_before(self, offset_bytes: int) -> bytes:
        start = seam_start(offset_bytes)
        if offset_bytes == self.position:
            return self._seam[-(offset_bytes - start) :] if offset_bytes else b""
        if self.handle is None:
            return b""
        return self.handle.pread(offset_bytes - start, start)

    def close(self) -> None:
        """Let the file go."""
        if self.handle is not None:
            self.handle.close()
            self.handle = None
