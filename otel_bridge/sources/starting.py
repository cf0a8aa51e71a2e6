"""Where reading begins in a log that no checkpoint knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from otel_bridge.sources.files import Handle
from otel_bridge.sources.generation import Generation
from otel_bridge.sources.names import join, rotations, split
from otel_bridge.sources.notices import Notice, NoticeKind

_RECENT_S = 3600
_BACK_BYTES = 65_536
_MAX_BACK_BYTES = 1_048_576


class Start(StrEnum):
    """Where a log that no checkpoint knows is begun.

    AUTO: at the beginning when a server holds it open or it was written in the last hour, else at its end. NOW: at the
    end of what is there when following begins; what appears later is read from its beginning.
    """

    AUTO = "auto"
    BEGINNING = "beginning"
    NOW = "now"


def _nobody() -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class Only:
    """Which of the files that are found are followed: those of one user (None: of any), `but` those at these paths,
    which somebody else follows now. When that one lets go of a file, it is followed from its end then."""

    owner: int | None = None
    but: Callable[[], frozenset[str]] = _nobody


def is_left(path: str, left: frozenset[str]) -> bool:
    """Whether a file, or the log that it is clearly a rotated part of, is left to others.

    A number behind a number says nothing: `debug-mcp-server-1231.log` is rather process 1231's own log.
    """
    if path in left or not left:
        return path in left
    folder, name = split(path)
    return any(join(folder, root) in left for root, _ in rotations(name) if not re.search(r"\d\.[^.]+$", root))


@dataclass(slots=True)
class Started:
    """How many logs were begun where; said in one line."""

    beginning: int = 0
    end: list[str] = field(default_factory=list)

    def notice(self) -> Notice | None:
        """What to say, or None when no log was begun at its end."""
        if not self.end:
            return None
        some = ", ".join(self.end[:3]) + (f" and {len(self.end) - 3} more" if len(self.end) > 3 else "")
        text = (
            f"reading {self.beginning} log files from their beginning and {len(self.end)} older ones from their end "
            f"({some}); `--from beginning` reads all"
        )
        return Notice(NoticeKind.STARTED, self.end[0], text)


def begins_at_end(
    start: Start, modified_s: float, *, in_use: bool, first_look: bool, since_s: float, now_s: float
) -> bool:
    """Whether a file is begun at its end. Times are Unix seconds; `since_s` is when following began."""
    if start is Start.BEGINNING:
        return False
    if start is Start.NOW:
        return first_look or modified_s < since_s
    return not in_use and modified_s < now_s - _RECENT_S


def start_at_end(generation: Generation) -> None:
    """Let a generation begin after its last whole line. Raises OSError when the file cannot be read."""
    assert generation.handle is not None
    generation.start_at(_last_line_end(generation.handle, generation.size))


def _last_line_end(handle: Handle, size_bytes: int) -> int:
    """The end of the last whole line: half a line that is being written now is still wanted, whole."""
    end = size_bytes
    while end > max(0, size_bytes - _MAX_BACK_BYTES):
        begin = max(0, end - _BACK_BYTES)
        newline = handle.pread(end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0 if end == 0 else size_bytes
