"""Packed logs: a gzip file read as if it were the plain one."""

from __future__ import annotations

import zlib
from dataclasses import replace

from otel_bridge.sources.files import FileStat, Handle

GZIP_MAGIC = b"\x1f\x8b"
_RAW_BYTES = 4_096
"""Small, because of what is unpacked at once nothing comes out when there is damage in it."""
_STEP_BYTES = 1_048_576
_WINDOW_BITS = 31  # gzip, not zlib, with the largest window


class DamagedGzipError(OSError):
    """The packed data is cut off or not gzip."""


class PackedHandle:
    """An open gzip file; offsets and sizes are those of the unpacked bytes.

    Meant for reading from front to back: going back unpacks from the beginning. Memory stays bounded however well the
    file is packed. Reading raises DamagedGzipError where the file is damaged, after all before that was given out.
    """

    def __init__(self, packed: Handle) -> None:
        self._packed = packed
        self._size_bytes: int | None = None
        self._rewind()

    def _rewind(self) -> None:
        self._raw_offset = 0
        self._raw = b""
        self._unpacker = zlib.decompressobj(_WINDOW_BITS)
        self._between_members = True
        self._window = bytearray()
        self._window_start = 0

    def stat(self) -> FileStat:
        """The packed file's, with the size of what can be unpacked."""
        if self._size_bytes is None:
            self._rewind()
            try:
                while self._unpack_more():
                    self._drop_before(self._window_start + len(self._window))
            except DamagedGzipError:
                pass  # whoever reads up to there is told
            self._size_bytes = self._window_start + len(self._window)
            self._rewind()
        return replace(self._packed.stat(), size_bytes=self._size_bytes)

    def pread(self, count_bytes: int, offset_bytes: int) -> bytes:
        """At most `count_bytes` unpacked bytes from `offset_bytes` on."""
        if offset_bytes < self._window_start:
            self._rewind()
        while self._window_start + len(self._window) < offset_bytes + count_bytes:
            self._drop_before(offset_bytes)
            try:
                if not self._unpack_more():
                    break
            except DamagedGzipError:
                if self._window_start + len(self._window) <= offset_bytes:
                    raise
                break
        begin = offset_bytes - self._window_start
        return bytes(self._window[begin : begin + count_bytes]) if begin >= 0 else b""

    def close(self) -> None:
        self._packed.close()

    def _drop_before(self, offset_bytes: int) -> None:
        count = min(max(0, offset_bytes - self._window_start), len(self._window))
        del self._window[:count]
        self._window_start += count

    def _unpack_more(self) -> bool:
        while True:
            if not self._raw:
                self._raw = self._packed.pread(_RAW_BYTES, self._raw_offset)
                self._raw_offset += len(self._raw)
            if self._between_members:
                # Files may be padded with zeros, and several packed files may be joined to one.
                self._raw = self._raw.lstrip(b"\0")
            if not self._raw:
                if self._between_members:
                    return False
                raise DamagedGzipError("the gzip data ends early")
            self._between_members = False
            try:
                unpacked = self._unpacker.decompress(self._raw, _STEP_BYTES)
            except zlib.error as error:
                raise DamagedGzipError(str(error)) from None
            self._raw = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                self._raw = self._unpacker.unused_data
                self._unpacker = zlib.decompressobj(_WINDOW_BITS)
                self._between_members = True
            if unpacked:
                self._window += unpacked
                return True
