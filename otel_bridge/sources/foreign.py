"""Files that hold a log in a form that is not read here: known by their first bytes, with the command that helps."""

from __future__ import annotations

import shlex

LOOK_BYTES = 512
_TAR_AT_BYTE, _TAR = 257, b"ustar"
_FORMS = (
    (b"PK\x03\x04", "a zip archive", "unpack it (unzip {path}) and name the log in it"),
    (b"BZh", "packed with bzip2", "pipe it in: bzip2 -dc {path} | otel-bridge replay -"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "pipe it in: zstd -dc {path} | otel-bridge replay -"),
    (b"\xfd7zXZ\x00", "packed with xz", "pipe it in: xz -dc {path} | otel-bridge replay -"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it (7z x {path}) and name the log in it"),
    (b"\xff\xfe", "UTF-16 text", "pipe it in: iconv -f UTF-16 -t UTF-8 {path} | otel-bridge replay -"),
    (b"\xfe\xff", "UTF-16 text", "pipe it in: iconv -f UTF-16 -t UTF-8 {path} | otel-bridge replay -"),
)


def foreign_form(path: str, head: bytes, *, is_packed: bool) -> tuple[str, str] | None:
    """What a file is and how to go on, where its first `LOOK_BYTES` (unpacked) show that it is no log; else None."""
    quoted = shlex.quote(path)
    if head[_TAR_AT_BYTE:].startswith(_TAR):
        return "a tar archive", f"unpack it (tar -x{'z' if is_packed else ''}f {quoted}) and name the log in it"
    for magic, what, how in _FORMS:
        if head.startswith(magic):
            return what, how.format(path=quoted)
    return None
