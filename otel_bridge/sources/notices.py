"""What happens to followed files besides new bytes: values that the caller says and counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """What happened. The values are stable: they name counters."""

    STARTED = "started"
    ROTATED = "rotated"
    COPIED = "copied"
    TRUNCATED = "truncated"
    REMOVED = "removed"
    GAP = "gap"
    HELD_CAP = "held_cap"
    OVERTAKEN = "overtaken"
    LATE_LINES = "late_lines"
    UNREADABLE = "unreadable"
    READABLE_AGAIN = "readable_again"
    WATCH_LIMIT = "watch_limit"


LOSSES = frozenset({NoticeKind.TRUNCATED, NoticeKind.GAP, NoticeKind.HELD_CAP, NoticeKind.OVERTAKEN})
"""The kinds whose `lost_bytes` count as lost."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to say about one file.

    `text` is one whole line for people (paths in it are not escaped: whoever shows it does that). `lost_bytes` are the
    bytes that were seen to exist and can never be read; `offset_bytes` is where they begin. Where the loss may be more
    than what was seen, `at_least` is true. `before_ms` and `after_ms` are the Unix times of the entries around the
    hole, as far as they are known.
    """

    kind: NoticeKind
    path: str
    text: str
    chain: str = ""
    offset_bytes: int = 0
    lost_bytes: int = 0
    at_least: bool = False
    before_ms: int | None = None
    after_ms: int | None = None

    @property
    def is_loss(self) -> bool:
        """Whether bytes are gone for good; such a notice is a warning, any other is information."""
        return self.kind in LOSSES and (self.lost_bytes > 0 or self.at_least)
