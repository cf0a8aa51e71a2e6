"""The plain limit of reading a log in Python: find the entries, let orjson parse each."""

from __future__ import annotations

import contextlib
import re
import sys

import orjson

_ENTRY = re.compile(rb'"message":\s*"(?:tool|debug|session):')
_BLOCK_BYTES = 1 << 20


def parse_all(path: str) -> int:
    """How many entries the log at `path` holds."""
    entries, rest = 0, b""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123, pathlib takes longer to import
        while block := file.read(_BLOCK_BYTES):
            block = rest + block
            position, end = 0, block.rfind(b"\n") + 1
            while found := _ENTRY.search(block, position, end):
                start = block.rfind(b"\n", position, found.start()) + 1 or position
                position = block.find(b"\n", found.end()) + 1
                with contextlib.suppress(orjson.JSONDecodeError):  # JavaScript writes half characters
                    orjson.loads(block[start : position - 1])
                entries += 1
            rest = block[end:]
    return entries


if __name__ == "__main__":
    sys.stdout.write(f"{parse_all(sys.argv[1])}\n")
