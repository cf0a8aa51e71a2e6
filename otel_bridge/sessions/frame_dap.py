"""DAP spans under frames: they hang on the span that is given out for a call, in its trace, and lie within it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from otel_bridge.sessions.dap_spans import DapSpans
from otel_bridge.sessions.frame_call import FrameCall
from otel_bridge.sessions.span import Span

_MOST_REMEMBERED: Final = 10_000


@dataclass(slots=True)
class CallersTraces:
    """The traces of spans that joined their caller's, by span id: what is below them is there too."""

    _traces: dict[int, int] = field(default_factory=dict)

    def add(self, call: FrameCall) -> None:
        """Notes a call that joins its caller's trace."""
        if call.caller is not None:
            self._traces[call.span_id] = call.caller.trace_id
            if len(self._traces) > _MOST_REMEMBERED:
                del self._traces[next(iter(self._traces))]

    def with_parents(self, spans: Iterable[Span]) -> list[Span]:
        """The spans, each in its parent's trace."""
        return [replace(span, trace_id=self._traces.get(span.parent_id, span.trace_id)) for span in spans]


def put_below(traces: Iterable[DapSpans], log_span_id: int, call: FrameCall) -> None:
    """In the place of the span that the log's mapping had for a call, puts the one that is given out."""
    for dap in traces:
        dap.ended = [
            replace(one, span_id=call.span_id, start_ns=max(one.start_ns, call.start_ns))
            if one.span_id == log_span_id
            else one
            for one in dap.ended
        ]
