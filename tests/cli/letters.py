"""Dead letters as a bridge leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from otel_bridge.export.dead_letters import DeadLetter, DeadLetters
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.sessions.span import Span, SpanKind
from otel_bridge.state.place import DEAD_LETTERS

REQUEST = RequestEncoder(Resource({"service.name": "then"}), Scope())


def span(number: int) -> Span:
    """A span; its name says which."""
    return Span(1, number, 0, f"span {number}", SpanKind.SERVER, 1, 2, {"a": "b"})


def bury(folder: Path, *letters: Sequence[int], refused_count: int = 1) -> DeadLetters:
    """Dead letters with the spans of these numbers, as a bridge leaves them."""
    dead_letters = DeadLetters(folder / DEAD_LETTERS)
    encoder = SpanEncoder()
    dead_letters.add(
        [
            DeadLetter(tuple(encoder.encode(span(n)) for n in numbers), refused_count, "HTTP 400", "bad", 0.0)
            for numbers in letters
        ],
        REQUEST,
    )
    return dead_letters
