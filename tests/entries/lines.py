"""Lines of a log by hand, and readers fed in any way, for tests of the entries."""

from __future__ import annotations

import json
from collections.abc import Iterable

from otel_bridge.entries.entry import Item
from otel_bridge.entries.reader import EntryReader

SID = "806a0589-7b86-490d-9928-679ab71012c1"
T_MS = 1_796_071_983_998


def line(message: object = "tool:call", timestamp: object = T_MS, /, **fields: object) -> bytes:
    """One line of the log, in the server's own compact form with sorted keys, with its newline."""
    everything = {"message": message, "timestamp": timestamp, "level": "info", **fields}
    return json.dumps(everything, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def nested(depth: int) -> bytes:
    """A structured line with a list of lists so deep that the whole line is `depth` levels deep."""
    return b'{"message":"tool:call","timestamp":1796071983998,"a":%s%s}\n' % (b"[" * (depth - 1), b"]" * (depth - 1))


def read(blocks: Iterable[bytes], max_line_bytes: int = 1 << 20) -> list[Item]:
    """All items of a file that is fed in these blocks and then flushed."""
    reader = EntryReader("server.log", max_line_bytes=max_line_bytes)
    items = [item for block in blocks for item in reader.feed(block)]
    return items + reader.flush()
