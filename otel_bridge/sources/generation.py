"""One generation: the bytes of one file between two truncations, and how far they were given out."""

from __future__ import annotations

from otel_bridge.sources.files import FileKey, FileStat, Handle
from otel_bridge.sources.identity import HEAD_BYTES, SEAM_BYTES, Checkpoint, digest, generation_id, seam_start

QUIET_S = 10.0
"""How long a file that the log has left must not grow before its end is believed."""


class ChangedError(Exception):
    """The file does not continue what was read from it: it was truncated or rewritten."""


class Generation:
    """A file that is read from front to back.

    `position` is the end of what was given out, `delivered` of what was delivered, `size` the largest size seen (all
    bytes). The head of the file and the seam before `position` are kept as bytes, so that every look and every read can
    tell whether it still is the same content.
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
        self.delivered = 0
        self.size = 0
        self.links = found.links
        self.head = b""
        self.grown_s = now_s
        self.absent_since_s: float | None = None
        self.given_out = False
        """Whether any byte was given out, now or before a restart."""
        self.over = False
        """Nothing can follow any more (truncated, given up, gone): the end is due without waiting."""
        self.cut_bytes = 0
        """Bytes that were seen and are there no more, though what was read still is; for whoever looks to say."""
        self.end_given = False
        self.released = False
        self.removal_said = False
        self.last_entry_ms: int | None = None
        self.modified_ns = 0
        self._seam = b""
        self._saved_seam = (0, digest(b""))

    @property
    def unread(self) -> int:
        """Bytes known to exist that were not given out."""
        return self.size - self.position

    @property
    def resting(self) -> bool:
        """Closed only to save a descriptor: nothing was unread, and its name leads back to it."""
        return self.handle is None and not self.over

    def nameless(self, now_s: float) -> bool:
        """Whether no name leads to the file any more, as far as looking can tell."""
        return self.links == 0 or (self.absent_since_s is not None and now_s - self.absent_since_s >= QUIET_S)

    def start_at(self, position: int) -> None:
        """Give nothing out before this offset. Raises OSError when the seam before it cannot be read."""
        assert self.handle is not None
        start = seam_start(position)
        self._seam = self.handle.pread(position - start, start)
        self.position = self.delivered = position
        self._saved_seam = (position, digest(self._seam))

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on where the checkpoint says; the caller has made sure that the file holds its head and seam."""
        assert self.handle is not None
        self.start_at(checkpoint.offset_bytes)
        self.head = self.handle.pread(HEAD_BYTES, 0)
        seen_bytes = max(checkpoint.size_bytes, checkpoint.offset_bytes)
        self.size = max(min(seen_bytes, self.handle.stat().size_bytes), checkpoint.offset_bytes)
        self.cut_bytes = seen_bytes - self.size
        self.given_out = checkpoint.offset_bytes > 0
        self.end_given = self.released = checkpoint.ended
        self.last_entry_ms = checkpoint.last_entry_ms

    def continued_in(self, handle: Handle) -> bool:
        """Whether an open file holds what was read from this one, and at the same place.

        Raises OSError when reading fails.
        """
        return (
            handle.pread(len(self.head), 0) == self.head
            and handle.pread(len(self._seam), self.position - len(self._seam)) == self._seam
        )

    def observe(self, now_s: float) -> bool:
        """Ask the file for its size; whether it has grown. Raises ChangedError, and OSError as the system says."""
        assert self.handle is not None
        found = self.handle.stat()
        self.links = found.links
        if (found.size_bytes, found.modified_ns) == (self.size, self.modified_ns):
            return False
        # Cut and grown to the same size again is possible: only an untouched file is believed without a look inside.
        if not self.continued_in(self.handle) or (found.size_bytes < self.size and not self._is_told_apart()):
            raise ChangedError
        self.modified_ns = found.modified_ns
        if found.size_bytes <= self.size:
            self.cut_bytes += self.size - found.size_bytes
            self.size = found.size_bytes
            return False
        if len(self.head) < HEAD_BYTES:
            self.head = self.handle.pread(HEAD_BYTES, 0)
        self.size = found.size_bytes
        self.grown_s = now_s
        self.end_given = self.released = False
        return True

    def _is_told_apart(self) -> bool:
        """Whether head and seam are enough to say that no other content can have both."""
        return self.position >= HEAD_BYTES + SEAM_BYTES

    def doubt(self) -> None:
        """Have the next look compare the bytes, whatever size and time the file has."""
        self.modified_ns = -1

    def read(self, max_bytes: int) -> tuple[int, bytes]:
        """The next bytes and their offset; nothing at the end. Raises ChangedError, and OSError as the system says."""
        assert self.handle is not None
        while True:
            if self.handle.pread(len(self.head), 0) != self.head:
                raise ChangedError
            # The seam is read along with what follows it: one call, and no moment between the check and the bytes.
            data = self.handle.pread(max(max_bytes, HEAD_BYTES) + len(self._seam), self.position - len(self._seam))
            if not data.startswith(self._seam):
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

    def give_up(self) -> int:
        """Take the rest for lost; how many bytes that are."""
        lost_bytes = self.unread
        self.size = self.position
        self.over = True
        self.close()
        return lost_bytes

    def close(self) -> None:
        """Let the file go."""
        if self.handle is not None:
            self.handle.close()
            self.handle = None

    def checkpoint(self) -> Checkpoint:
        """The checkpoint for what was delivered. Raises ChangedError when the file's bytes are not those any more."""
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
            seam_hash=self._seam_hash(self.delivered),
            size_bytes=self.size,
            last_entry_ms=self.last_entry_ms,
            ended=self.released or (self.over and self.delivered == self.size),
        )

    def _seam_hash(self, offset_bytes: int) -> str:
        if self._saved_seam[0] != offset_bytes:
            start = seam_start(offset_bytes)
            if offset_bytes == self.position:
                seam = self._seam
            elif self.handle is None:
                seam = b""
            else:
                seam = self.handle.pread(offset_bytes - start, start)
                if not self.continued_in(self.handle):
                    raise ChangedError
            self._saved_seam = (offset_bytes, digest(seam))
        return self._saved_seam[1]
