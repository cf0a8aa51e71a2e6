"""Batches: what is sent and acknowledged together, and how one is cut into requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otel_bridge.export.dead_letters import DeadLetter
from otel_bridge.export.encode import EncodedSpan
from otel_bridge.export.verdict import Delivered, Misconfigured, PartlyRefused, Refused, TooLarge, TryLater, Verdict


@dataclass(frozen=True, slots=True)
class Batch:
    """The spans that a stretch of lines made final, and the mark that may be kept once the backend has them all.

    `spans` may be empty (the stretch ended no span) and may be more than one request holds. `mark` is the caller's.
    """

    spans: tuple[EncodedSpan, ...]
    mark: object


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request holds, before compression.

    A request costs as much as forty spans; a megabyte passes the default limits of nginx (1 MiB) and of gRPC (4 MiB).
    """

    max_spans: int = 2048
    max_bytes: int = 1_000_000

    def is_full(self, span_count: int, size_bytes: int) -> bool:
        """Whether a batch of so many spans and bytes should be sent before more is read."""
        return span_count >= self.max_spans or size_bytes >= self.max_bytes


def cut(spans: Sequence[EncodedSpan], limits: Limits) -> list[tuple[EncodedSpan, ...]]:
    """The spans in their order, in parts within the limits; a span that is too large by itself is a part by itself."""
    parts: list[tuple[EncodedSpan, ...]] = []
    part: list[EncodedSpan] = []
    size_bytes = 0
    for span in spans:
        if part and (len(part) >= limits.max_spans or size_bytes + len(span) > limits.max_bytes):
            parts.append(tuple(part))
            part, size_bytes = [], 0
        part.append(span)
        size_bytes += len(span)
    if part:
        parts.append(tuple(part))
    return parts


class Sending:
    """The way of one batch through its verdicts: which part is next, and what came of those before.

    A part that is too large, or that holds a refused span, is halved until what is at fault stands alone.
    `settled_spans` have a final verdict, `delivered_spans` a good one.
    """

    def __init__(self, spans: Sequence[EncodedSpan], limits: Limits) -> None:
        self._parts = cut(spans, limits)[::-1]
        self.settled_spans = 0
        self.delivered_spans = 0
        self.letters: list[DeadLetter] = []

    @property
    def part(self) -> tuple[EncodedSpan, ...]:
        """What to send next; empty when nothing is left."""
        return self._parts[-1] if self._parts else ()

    def settle(self, verdict: Verdict, now_unix_s: float) -> bool:
        """Take the verdict on `part`. Returns whether the same part has to be sent again, after a wait."""
        part = self._parts.pop()
        match verdict:
            case Delivered():
                self.delivered_spans += len(part)
            case PartlyRefused(count, message):
                count = min(count, len(part))
                self.delivered_spans += len(part) - count
                self.letters.append(DeadLetter(part, count, "partial success", message, now_unix_s))
            case TooLarge() | Refused() if len(part) > 1:
                middle = len(part) // 2
                self._parts += (part[middle:], part[:middle])
                return False
            case TooLarge(reason, code, is_final=True) | Refused(reason, code):
                self.letters.append(DeadLetter(part, 1, code, reason, now_unix_s))
            case TryLater() | Misconfigured() | TooLarge():
                self._parts.append(part)
                return True
        self.settled_spans += len(part)
        return False
