"""JSON values and texts as SQLite keeps them."""

from __future__ import annotations

import json
from typing import cast

import orjson

from otel_bridge.sessions.saved import Json

Stored = str | bytes


def stored(value: object) -> Stored:
    """JSON text; as bytes where it holds what orjson does not carry: integers beyond 64 bits, lone surrogates.

    (Lone surrogates are how Python writes the bytes of a file name that is no UTF-8.)
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def loaded(text: Stored) -> object:
    """The value of what `stored` gave. Raises ValueError for anything else."""
    return cast("object", orjson.loads(text) if isinstance(text, str) else json.loads(text))


def loaded_object(text: Stored) -> Json:
    """As `loaded`, for what has to be an object. Raises ValueError when it is not."""
    value = loaded(text)
    if not isinstance(value, dict):
        raise ValueError(f"no JSON object: {type(value).__name__}")
    return value


def key(text: str) -> bytes:
    """A text as a key: as bytes, because names of files (and so of chains) can hold what is no Unicode."""
    return text.encode("utf-8", "surrogatepass")


def text_of(stored_key: bytes) -> str:
    """The text of a key. Raises ValueError for what is none."""
    return stored_key.decode("utf-8", "surrogatepass")
