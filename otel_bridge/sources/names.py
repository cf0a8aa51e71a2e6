"""What a file's name can say about its place in a rotation; whether it is so is judged by contents (succession.py).

Names are evidence only: `debug-mcp-server-1231.log` may be the log of process 1231 or the first rotation of process
123's log. So every reading of a name is given out, and none is taken for the truth here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBERED = re.compile(r"(?P<root>.+)\.(?P<index>[1-9]\d{0,3})")
"""logrotate, Python's RotatingFileHandler: `server.log.1`."""

_DATED = re.compile(r"(?P<root>.+)[-.](?P<date>\d{4}-?\d{2}-?\d{2})(?:[-.]\d+)?")
"""logrotate's dateext: `server.log-20261130`."""

_TAILABLE = re.compile(r"(?P<stem>.*?)(?P<digits>\d+)(?P<extension>\.[^.]+)")
"""winston's `tailable`: `server1.log` beside `server.log`. How many of the digits are the index is open."""

_MAX_INDEX_DIGITS = 2
COMPRESSED = ".gz"


def split(path: str) -> tuple[str, str]:
    """A path's folder and name. (Plain text, not `pathlib`: this runs for every file in every look.)"""
    folder, _, name = path.rpartition("/")
    return folder, name


def join(folder: str, name: str) -> str:
    """The path of a name in a folder, as `split` takes it apart."""
    return f"{folder}/{name}"


class Rotation(NamedTuple):
    """One reading of a name: part `age` of the log `root`; the larger `age`, the older the part."""

    root: str
    age: int


def uncompressed(name: str) -> str:
    """The name without `.gz`."""
    return name.removesuffix(COMPRESSED)


def rotations(name: str) -> tuple[Rotation, ...]:
    """Every way to read a file name (without folder) as a rotated part of another log, shortest root first."""
    name = uncompressed(name)
    if match := _NUMBERED.fullmatch(name):
        return (Rotation(match["root"], int(match["index"])),)
    if match := _DATED.fullmatch(name):
        # A later date is a newer part, so the index runs backwards.
        return (Rotation(match["root"], 99_999_999 - int(match["date"].replace("-", ""))),)
    match = _TAILABLE.fullmatch(name)
    if match is None:
        return ()
    digits = match["digits"]
    found = []
    for length in range(min(_MAX_INDEX_DIGITS, len(digits)), 0, -1):
        rest, index = digits[:-length], digits[-length:]
        # `debug-mcp-server-11.log` is the log of a process, not part 11 of a log named `debug-mcp-server-.log`.
        if index[0] != "0" and (rest or match["stem"][-1:].isalnum()):
            found.append(Rotation(match["stem"] + rest + match["extension"], int(index)))
    return tuple(found)


def is_log(name: str) -> bool:
    """Whether a folder's file looks like a log: `*.log` and its rotated forms, packed or not."""
    name = uncompressed(name)
    return name.endswith(".log") or any(root.endswith(".log") for root, _ in rotations(name))
