"""Where finished spans go: over OTLP by our own delivery, or to an exporter or processor of the host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from otel_bridge.export.batches import Batch, Limits
from otel_bridge.export.delivery import Delivery
from otel_bridge.export.encode import RequestEncoder, SpanEncoder
from otel_bridge.export.resource import Resource, Scope
from otel_bridge.export.transport import Transport
from otel_bridge.inprocess.announcements import Announcements
from otel_bridge.sessions.redaction import redact_text
from otel_bridge.sessions.span import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

MAX_SPANS = Limits().max_spans
"""Spans that are handed on together, at most."""


class SinkCounts(NamedTuple):
    """Spans that were `delivered` and `refused` so far, and why nothing gets through at the moment (else empty)."""

    delivered: int = 0
    refused: int = 0
    trouble: str = ""


class Sink(Protocol):
    """Takes spans from the bridge's thread. `flush` and `counts` may be called by any thread."""

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until spans can be sent; False if that took longer than `timeout_s`."""

    def send(self, spans: Sequence[Span]) -> None:
        """Take at most `MAX_SPANS` spans. Nothing that a backend or a host's exporter does is raised."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until all spans that were sent have an answer; False if that took longer than `timeout_s`."""

    def counts(self) -> SinkCounts:
        """The numbers of this moment."""

    def close(self, timeout_s: float) -> None:
        """Finish what was sent within `timeout_s`."""


class DeliverySink:
    """Sends over OTLP. There is no state to keep refused spans in: they are counted and said."""

    def __init__(self, transport: Transport, resource: Resource, announcements: Announcements) -> None:
        self._encoder = SpanEncoder()
        self._delivery = Delivery(
            transport,
            RequestEncoder(resource, Scope()),
            None,
            on_commit=lambda mark: None,
            on_bulletin=lambda bulletin: announcements.say(bulletin.text),
        )

    def wait_for_room(self, timeout_s: float) -> bool:
        return self._delivery.wait_for_room(timeout_s)

    def send(self, spans: Sequence[Span]) -> None:
        self._delivery.submit(Batch(tuple(self._encoder.encode(span) for span in spans), None))

    def flush(self, timeout_s: float) -> bool:
        return self._delivery.wait_until_done(timeout_s)

    def counts(self) -> SinkCounts:
        now = self._delivery.statistics()
        return SinkCounts(now.delivered_spans, now.refused_spans, now.trouble)

    def close(self, timeout_s: float) -> None:
        self._delivery.close(timeout_s)


class HostSink:
    """Hands spans to an exporter or a span processor of the host's, in the form of the SDK, and shuts it down at last.

    Whatever it raises is counted as a refusal and said; nothing is sent twice, for an exporter has tried again itself.
    """

    def __init__(self, target: SpanExporter | SpanProcessor, resource: Resource, announcements: Announcements) -> None:
        from opentelemetry.sdk.trace import SpanProcessor

        from otel_bridge.export.readable import ReadableSpans

        self._target = target
        self._hand_over = _to_processor(target) if isinstance(target, SpanProcessor) else _to_exporter(target)
        self._make = ReadableSpans(resource, Scope()).make
        self._announcements = announcements
        self._name = type(target).__name__
        self._counts = SinkCounts()

    def wait_for_room(self, timeout_s: float) -> bool:
        return True

    def send(self, spans: Sequence[Span]) -> None:
        reason = "it says so itself"
        try:
            taken = self._hand_over([self._make(span) for span in spans])
        except Exception as failure:  # noqa: BLE001, it is the host's code and must not end the bridge
            taken, reason = 0, _in_words(failure)
        delivered, refused, _ = self._counts
        refused += len(spans) - taken
        self._counts = SinkCounts(delivered + taken, refused)
        if taken < len(spans):
            self._announcements.count("refused", refused, f"spans that {self._name} failed to export ({reason}): {{}}")

    def flush(self, timeout_s: float) -> bool:
        try:
            # Some exporters return nothing, where the SDK's base class does.
            return self._target.force_flush(round(timeout_s * 1000)) is not False
        except Exception as failure:  # noqa: BLE001, as in `send`
            self._announcements.say(f"{self._name} cannot be flushed: {_in_words(failure)}")
            return False

    def counts(self) -> SinkCounts:
        return self._counts

    def close(self, timeout_s: float) -> None:
        try:
            self._target.shutdown()
        except Exception as failure:  # noqa: BLE001, as in `send`
            self._announcements.say(f"{self._name} cannot be shut down: {_in_words(failure)}")


HandOver = Callable[[Sequence["ReadableSpan"]], int]
"""Gives spans to the host's object; returns how many it took."""


def _to_exporter(exporter: SpanExporter) -> HandOver:
    from opentelemetry.sdk.trace.export import SpanExportResult

    def hand_over(spans: Sequence[ReadableSpan]) -> int:
        return 0 if exporter.export(spans) is SpanExportResult.FAILURE else len(spans)

    return hand_over


def _to_processor(processor: SpanProcessor) -> HandOver:
    def hand_over(spans: Sequence[ReadableSpan]) -> int:
        for span in spans:
            processor.on_end(span)
        return len(spans)

    return hand_over


def _in_words(failure: Exception) -> str:
    """An exception on one line; a library's message can hold a URL with a password, or a header."""
    text = redact_text(str(failure))
    return f"{type(failure).__name__}: {text[:200]}" if text else type(failure).__name__
