"""An exporter that keeps what it is given, for tests of programs that give the bridge an exporter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_bridge.sessions.span import Attributes, Span, SpanEvent, SpanKind, SpanLink, StatusCode


class CapturingExporter(SpanExporter):
    """Keeps the spans it is given, and gives them back as the `Span` values that the mapping made.

    `results` are the answers to the calls of `export`, in their order; an exception is raised. After the last, and
    without any, every call succeeds. Spans of a call that fails are not kept.
    """

    def __init__(self, results: Iterable[SpanExportResult | Exception] = ()) -> None:
        self._results = iter(results)
        self._changed = threading.Condition()
        self._spans: list[Span] = []
        self._is_shut_down = False

    @property
    def spans(self) -> list[Span]:
        """The spans that were taken so far, in their order."""
        with self._changed:
            return list(self._spans)

    @property
    def is_shut_down(self) -> bool:
        """Whether `shutdown` was called."""
        return self._is_shut_down

    def wait_for(self, predicate: Callable[[list[Span]], object], timeout_s: float = 10.0) -> list[Span]:
        """Return the spans as soon as `predicate` of them is true; it is asked now and after every export.

        Raises TimeoutError after `timeout_s` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: bool(predicate(list(self._spans))), timeout_s):
                raise TimeoutError(f"not within {timeout_s:g} s; {len(self._spans)} spans had come")
            return list(self._spans)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Keep the spans, unless it is to fail; called by the bridge."""
        with self._changed:
            result = next(self._results, SpanExportResult.SUCCESS)
            if isinstance(result, Exception):
                raise result
            if result is SpanExportResult.SUCCESS:
                self._spans += [_span(span) for span in spans]
                self._changed.notify_all()
            return result

    def shutdown(self) -> None:
        """Remember that it was called."""
        self._is_shut_down = True

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return True


def _span(span: ReadableSpan) -> Span:
    context, parent = span.context, span.parent
    assert context is not None
    assert span.start_time is not None
    assert span.end_time is not None
    return Span(
        trace_id=context.trace_id,
        span_id=context.span_id,
        parent_id=parent.span_id if parent else 0,
        name=span.name,
        kind=SpanKind[span.kind.name],
        start_ns=span.start_time,
        end_ns=span.end_time,
        attributes=_attributes(span.attributes),
        events=tuple(SpanEvent(one.name, one.timestamp, _attributes(one.attributes)) for one in span.events),
        links=tuple(
            SpanLink(
                one.context.trace_id,
                one.context.span_id,
                one.context.trace_state.to_header(),
                _attributes(one.attributes),
                one.context.is_remote,
            )
            for one in span.links
        ),
        status=StatusCode[span.status.status_code.name],
        status_message=span.status.description or "",
        dropped_events=span.dropped_events,
        trace_state=context.trace_state.to_header(),
        is_parent_remote=parent is not None and parent.is_remote,
    )


def _attributes(attributes: object) -> Attributes:
    return dict(cast("Attributes", attributes or {}))
