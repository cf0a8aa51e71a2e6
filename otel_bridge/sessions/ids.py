"""Trace and span ids, each a function of the log alone.

The same entries give the same ids whether they were tailed, replayed or handed over in-process, so that a span that is
sent again is the same span to a backend, not a second one (docs/trace-shape.md, "Ids").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from typing import Final

import orjson

from otel_bridge.entries.entry import Entry, StateChange

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")

OUTSIDE_THE_ID: Final = ("level", "namespace", "success", "pid")
"""Fields that differ between writers of the same entry: the specification's form, 0.24.2's form, a host's handler."""

WINDOW_MS: Final = 10_000
"""How long equal entries are remembered. Time in one file was seen to step back by 112 ms at most."""


def canonical(kind: str, text: str, time_ms: int, fields: Mapping[str, object]) -> bytes:
    """The bytes that an entry's ids come from: sorted JSON of its redacted fields, without `OUTSIDE_THE_ID`."""
    identity = {**fields}
    for name in OUTSIDE_THE_ID:
        identity.pop(name, None)
    identity["message"] = f"{kind} {text}" if text else kind
    identity["timestamp"] = time_ms
    return canonical_json(identity)


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys and no white space; integers of any size."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )


def trace_id_of_session(session_id: str) -> int:
    """The session's UUID itself, so that a session id from the log can be pasted into a backend's search box.

    A session id that is no UUID, or is all zeros, becomes its 16-byte hash.
    """
    if _UUID.fullmatch(session_id):
        trace_id = int(session_id.replace("-", ""), 16)
        if trace_id:
            return trace_id
    return _digest(16, session_id.encode())


def root_span_id(trace_id: int) -> int:
    """A function of the trace id alone: a log that starts in the middle must not move its spans to another parent."""
    return _digest(8, trace_id.to_bytes(16, "big"), b"root")


def span_id(trace_id: int, opener: bytes) -> int:
    """The id of the span that an entry opened; `opener` is what `Occurrences` gave for the entry and the role."""
    return _digest(8, trace_id.to_bytes(16, "big"), opener)


def trace_id_of_entry(opener: bytes) -> int:
    """The trace id of a call that belongs to no session."""
    return _digest(16, b"trace", opener)


def derived_span_id(parent_id: int, *parts: str) -> int:
    """The id of a span that has no entry of its own: events beyond the limit, or a snapshot salted with its moment."""
    return _digest(8, parent_id.to_bytes(8, "big"), *[part.encode() for part in parts])


_framed_length: Final = Struct(">I").pack


def _digest(size_bytes: int, *parts: bytes) -> int:
    framed = b""
    for part in parts:
        framed += _framed_length(len(part)) + part
    return int.from_bytes(blake2b(framed, digest_size=size_bytes).digest(), "big") or 1


@dataclass(slots=True)
class Occurrences:
    """Counts equal entries of one millisecond within one log, so that each gets an id of its own.

    A log holds them for `WINDOW_MS` of its own time; `take_changes` gives out what changed since it was last called.
    """

    _counts: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    _changed: set[bytes] = field(default_factory=set)
    _pruned_at_ms: int = 0

    def opener(self, role: str, entry: Entry) -> bytes:
        """16 bytes that stand for this entry (redacted) in this role, and for how many equal ones had it before.

        To be asked once for each entry that opens a span in the role, in the order of the log.
        """
        return self._counted(role, canonical(entry.kind, entry.text, entry.time_ms, entry.fields), entry.time_ms)

    def opener_of_state(self, change: StateChange, role: str = "state") -> bytes:
        """As `opener`, of a state line."""
        parts = [change.session_id, change.before, change.after, change.time_ms]
        return self._counted(f"{role} line", canonical_json(parts), change.time_ms)

    def _counted(self, role: str, canonical_entry: bytes, time_ms: int) -> bytes:
        key = blake2b(role.encode() + b"\0" + canonical_entry, digest_size=16).digest()
        seen = self._counts.get(key)
        count = seen[1] + 1 if seen else 0
        self._counts[key] = (time_ms, count)
        self._changed.add(key)
        if abs(time_ms - self._pruned_at_ms) > WINDOW_MS:  # abs: a clock can jump back
            self._prune(time_ms)
        return blake2b(key + count.to_bytes(8, "big"), digest_size=16).digest() if count else key

    def _prune(self, now_ms: int) -> None:
        self._pruned_at_ms = now_ms
        # Made anew, because a dictionary never gives back the room that it once needed.
        self._counts = {key: seen for key, seen in self._counts.items() if abs(now_ms - seen[0]) <= WINDOW_MS}
        self._changed.intersection_update(self._counts)

    def take_changes(self) -> list[tuple[str, int, int]]:
        """`(hash, time in ms, count)` of each entry counted since the last call."""
        changes = [(key.hex(), *self._counts[key]) for key in self._changed]
        self._changed.clear()
        return changes

    def restore(self, saved: Iterable[tuple[str, int, int]]) -> None:
        """Puts back what `take_changes` gave out."""
        for key, time_ms, count in saved:
            self._counts[bytes.fromhex(key)] = (time_ms, count)
            self._pruned_at_ms = max(self._pruned_at_ms, time_ms)
