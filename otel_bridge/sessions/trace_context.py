"""The W3C trace context that a caller sends along (MCP's SEP-414 puts it into `params._meta`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_TRACESTATE: Final = re.compile(r"[ -~\t]{1,512}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of another process. Ids are integers of 128 and 64 bits, `trace_state` is the W3C's text."""

    trace_id: int
    span_id: int
    trace_state: str = ""


def trace_context(carrier: Mapping[str, object]) -> TraceContext | None:
    """The context in `traceparent` and `tracestate`; None where there is none, or it is not well-formed.

    As the W3C's Trace Context says, version ff and ids of zeros are not; a later version may have more behind it.
    """
    parent, state = carrier.get("traceparent"), carrier.get("tracestate")
    found = _TRACEPARENT.fullmatch(parent.strip(" \t")) if isinstance(parent, str) else None
    if found is None or found[1] == "ff" or (found[1] == "00" and found[4]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    usable = isinstance(state, str) and _TRACESTATE.fullmatch(state)
    return TraceContext(trace_id, span_id, str(state) if usable else "")
