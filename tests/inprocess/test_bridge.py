"""The bridge inside a program: taking entries, flushing, closing, counting, and what its host may do wrong."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from otel_bridge import Bridge, BridgeStatistics, SettingError, convert
from otel_bridge.inprocess import worker
from otel_bridge.testing import CannedReply, CapturingExporter, Receiver, session_entries
from otel_bridge.testing.entries import START_MS
from tests.inprocess.programs import lines_of
from tests.waiting import wait_until

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def feed_session(bridge: Bridge, **options: Any) -> None:
    """A small session."""
    for entry in session_entries(**options):
        bridge.feed(entry)


def end_reasons(exporter: CapturingExporter) -> list[object]:
    """How the sessions ended."""
    return [span.attributes["debug.session.end_reason"] for span in exporter.spans if "lifetime" in span.name]


def test_closing_ends_what_is_open() -> None:
    """A session that the program leaves open ends as `not_closed`, as in a replay long after."""
    exporter = CapturingExporter()
    entries = session_entries(is_closed=False)
    with Bridge(exporter) as bridge:
        for entry in entries:
            bridge.feed(entry)

    assert end_reasons(exporter) == ["not_closed"]
    assert exporter.spans == list(convert(lines_of(entries)))
    assert exporter.is_shut_down


def test_flushing_delivers_what_is_final_and_ends_nothing() -> None:
    """After a flush every final span has been exported; the open session goes on."""
    exporter = CapturingExporter()
    with Bridge(exporter) as bridge:
        feed_session(bridge, is_closed=False)
        assert bridge.flush()
        names = [span.name for span in exporter.spans]

    assert "tools/call evaluate_expression" in names
    assert "debug_session lifetime" not in names
    assert "debug_session lifetime" in [span.name for span in exporter.spans]


def test_spans_come_without_a_flush() -> None:
    """Nobody has to ask for what is final."""
    exporter = CapturingExporter()
    with Bridge(exporter) as bridge:
        feed_session(bridge)
        exporter.wait_for(lambda spans: "debug_session lifetime" in [span.name for span in spans])


def test_flushing_does_not_wait_for_a_host_that_never_stops() -> None:
    """A flush is about what was handed over before it, however much comes after."""
    exporter = CapturingExporter()
    is_over = threading.Event()
    with Bridge(exporter) as bridge:
        feed_session(bridge, is_closed=False)

        def go_on() -> None:
            while not is_over.is_set():
                bridge.feed({"message": "[SM _updateSessionState s] State change: a -> b", "timestamp": START_MS})

        hosts = [threading.Thread(target=go_on) for _ in range(3)]
        for host in hosts:
            host.start()
        try:
            assert bridge.flush(20)
        finally:
            is_over.set()
            for host in hosts:
                host.join()


def test_statistics_tell_what_became_of_everything() -> None:
    """Entries, malformed ones, and spans with an answer; what is no entry does not count."""
    with Bridge(CapturingExporter()) as bridge:
        feed_session(bridge)
        bridge.feed({"message": "tool:call", "tool": "no_time"})
        bridge.feed(b'{"message": "tool:call", "timestamp": 1,')
        bridge.feed('{"message": "Server started", "timestamp": 1796071984000}')
        bridge.feed("prose")

    expected = BridgeStatistics(
        entries=len(session_entries()) + 1,
        queued=0,
        dropped=0,
        malformed=2,
        spans=8,
        delivered=8,
        refused=0,
        trouble="",
    )
    assert expected == bridge.statistics()


def test_an_entry_is_taken_as_it_was() -> None:
    """What the host does to its objects afterwards changes nothing."""
    exporter = CapturingExporter()
    with Bridge(exporter) as bridge:
        for entry in session_entries():
            bridge.feed(entry)
            for value in entry.values():
                if isinstance(value, dict):
                    value.clear()
            entry.clear()

    assert exporter.spans == list(convert(lines_of(session_entries())))


def test_nothing_secret_is_queued() -> None:
    """What waits for the bridge's thread is redacted already."""
    exporter = _Stuck()
    bridge = Bridge(exporter)
    feed_session(bridge)
    assert exporter.is_called.wait(10)
    bridge.feed({"message": "debug:output", "timestamp": START_MS, "output": SECRET, "token": "abc"})
    queued = b"".join(bridge._intake._lines)
    exporter.may_go_on.set()
    bridge.close()

    assert b"debug:output" in queued
    assert b"<redacted>" in queued
    assert SECRET.encode() not in queued
    assert b"abc" not in queued


class _Stuck(SpanExporter):
    """Waits in its first export until it may go on."""

    def __init__(self) -> None:
        self.is_called, self.may_go_on = threading.Event(), threading.Event()
        self.count = 0

    def export(self, spans: Any) -> SpanExportResult:
        """Waits."""
        self.is_called.set()
        self.may_go_on.wait(60)
        self.count += len(spans)
        return SpanExportResult.SUCCESS


def test_a_full_queue_drops_counts_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """An exporter that hangs costs the host neither time nor memory; what is lost is told."""
    exporter = _Stuck()
    bridge = Bridge(exporter, max_queued_entries=50)
    feed_session(bridge)
    assert exporter.is_called.wait(10)
    for number in range(200):
        bridge.feed({"message": "debug:output", "timestamp": START_MS, "sessionId": "s", "output": str(number)})
    full = bridge.statistics()
    exporter.may_go_on.set()
    bridge.close()

    assert (full.queued, full.dropped) == (50, 150)
    assert full.entries + full.dropped == len(session_entries()) + 200
    said = [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()]
    assert said == ["entries dropped, for the queue of 50 is full or the program ended: 150"]


def test_an_exporter_that_never_returns_does_not_hold_up_the_close(caplog: pytest.LogCaptureFixture) -> None:
    """The close gives up at its deadline, and counts what is lost."""
    exporter = _Stuck()
    bridge = Bridge(exporter)
    feed_session(bridge)
    assert exporter.is_called.wait(10)
    bridge.feed(session_entries()[0])

    final = bridge.close(timeout_s=0.05)
    exporter.may_go_on.set()

    assert (final.queued, final.dropped, final.delivered) == (0, 1, 0)
    assert "spans without an answer at the end, they are lost: 8" in caplog.messages


def test_entries_after_the_close_are_dropped_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A closed bridge takes nothing, raises nothing, and says it."""
    bridge = Bridge(CapturingExporter())
    feed_session(bridge)
    bridge.close()
    feed_session(bridge)

    assert bridge.statistics().dropped == len(session_entries())
    assert bridge.close() == bridge.statistics()
    assert [text for text in caplog.messages if "after the close" in text] == [
        "an entry came after the close; it is dropped, and so are those after it"
    ]


def test_there_is_no_waiting_after_the_close() -> None:
    """What could not be delivered by then will not be."""
    with Receiver() as receiver:
        nobody = receiver.endpoint
    bridge = Bridge(endpoint=nobody)
    feed_session(bridge)
    bridge.close(0.1)

    assert not bridge.flush(3600)


def test_what_the_settings_have_to_say_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A variable that is likely meant otherwise is pointed out, once there is something to send."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10000")
    with Receiver() as receiver, Bridge(endpoint=receiver.endpoint) as bridge:
        feed_session(bridge)

    assert any("OTEL_EXPORTER_OTLP_TIMEOUT=10000 is read as seconds" in text for text in caplog.messages)


def test_a_bridge_that_was_never_used_costs_no_thread() -> None:
    """Nothing runs before the first entry, and closing has nothing to wait for."""
    before = threading.active_count()
    with Receiver() as receiver:
        bridge = Bridge(endpoint=receiver.endpoint)
        during = threading.active_count()

        assert bridge.flush()
        assert bridge.close().entries == 0
        assert during <= before + 1  # the receiver's own


@pytest.mark.parametrize("wrap", [SimpleSpanProcessor, BatchSpanProcessor])
def test_a_span_processor_gets_the_spans(wrap: Callable[[SpanExporter], Any]) -> None:
    """A processor of the SDK sees each span's end; closing flushes it."""
    exporter = CapturingExporter()
    with Bridge(wrap(exporter)) as bridge:
        feed_session(bridge)
        assert bridge.flush()
        flushed = len(exporter.spans)

    assert flushed == 8
    assert exporter.spans == list(convert(lines_of(session_entries())))
    assert exporter.is_shut_down


class _Keeping(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def test_an_exporter_sees_the_resource_and_scope_of_the_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """`service_name` and OTEL_RESOURCE_ATTRIBUTES, and nothing of the process."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    exporter = _Keeping()
    with Bridge(exporter, service_name="my-server") as bridge:
        feed_session(bridge)

    (attributes,) = {tuple(sorted(span.resource.attributes.items())) for span in exporter.spans}
    assert attributes == (("deployment.environment.name", "test"), ("service.name", "my-server"))
    scope = exporter.spans[0].instrumentation_scope
    assert scope is not None
    assert scope.name == "otel_bridge"


def test_an_exporter_that_fails_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """A failure and an exception are both spans that were refused; the next ones are sent all the same."""
    failures: list[SpanExportResult | Exception] = [
        SpanExportResult.FAILURE,
        OSError(f"no route to http://me:{SECRET}@host\x1b[2J"),
    ]
    exporter = CapturingExporter(failures)
    with Bridge(exporter) as bridge:
        for number in range(3):
            feed_session(bridge, session_id=f"s-{number}")
            assert bridge.flush()

    final = bridge.statistics()
    assert (final.spans, final.delivered, final.refused) == (24, 8, 16)
    assert "spans that CapturingExporter failed to export (it says so itself): 8" in caplog.messages
    assert SECRET not in caplog.text
    assert "\x1b" not in caplog.text


def test_a_refusal_of_the_backend_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """What a backend will never take is no reason to stop."""
    with Receiver([CannedReply(400)] * 30) as receiver, Bridge(endpoint=receiver.endpoint) as bridge:
        feed_session(bridge, is_closed=False)
        assert bridge.flush()
        refused = bridge.statistics().refused

    assert refused > 0
    assert any("refused" in text for text in caplog.messages)


def test_a_backend_that_comes_back_gets_everything() -> None:
    """An outage that ends before the queue is full loses nothing."""
    with Receiver([CannedReply(503)] * 3) as receiver, Bridge(endpoint=receiver.endpoint) as bridge:
        feed_session(bridge)
        assert bridge.flush(30)

        assert receiver.spans == list(convert(lines_of(session_entries())))
        assert bridge.statistics().trouble == ""


def test_the_environment_says_where_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an exporter the OTEL_EXPORTER_OTLP_* variables decide; a header can be given as well."""
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        with Bridge(headers={"X-Tenant": "a"}, service_name="mine") as bridge:
            feed_session(bridge)

    assert len(receiver.spans) == 8
    assert {request.headers["x-tenant"] for request in receiver.requests} == {"a"}


def test_silence_ends_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of which nothing is heard for the idle timeout is over, though the program runs on."""
    monkeypatch.setattr(worker, "GRACE_MS", 0)
    exporter = CapturingExporter()
    with Bridge(exporter, idle_timeout_s=0.001) as bridge:
        bridge.feed(session_entries()[1])
        wait_until(lambda: end_reasons(exporter) == ["not_closed"], "the session ended")


class _Awkward:
    """An object that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def _endless() -> list[object]:
    items: list[object] = []
    items.append(items)
    return items


@pytest.mark.parametrize("value", [_Awkward(), _endless(), {("a", "b"): 1}], ids=["awkward", "endless", "keys"])
def test_no_object_of_the_host_can_make_it_raise(value: object, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be written as JSON is counted and said, without showing it."""
    with Bridge(CapturingExporter()) as bridge:
        bridge.feed({"message": "tool:call", "timestamp": START_MS, "request": value})

    assert bridge.statistics().malformed == 1
    assert SECRET not in caplog.text
    assert any("cannot be written as JSON" in text for text in caplog.messages)


def test_an_entry_over_the_line_limit_is_malformed() -> None:
    """As in a file, so that both agree."""
    with Bridge(CapturingExporter()) as bridge:
        bridge.feed({"message": "debug:output", "timestamp": START_MS, "output": "x" * (1 << 20)})

    assert (bridge.statistics().entries, bridge.statistics().malformed) == (0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capture": "everything"}, "capture: `everything` is not known; use one of metadata, arguments, full"),
        ({"max_queued_entries": 0}, "max_queued_entries: less than one entry; give a number such as 20000"),
        ({"idle_timeout_s": 0}, "the idle timeout is not above zero; give a time such as 3600 s"),
        ({"endpoint": "localhost"}, "endpoint: not an http:// or https:// URL; write it as in http://localhost:4318"),
        ({"protocol": "http/json"}, "protocol: `http/json` is not supported; use http/protobuf or grpc"),
    ],
)
def test_options_that_cannot_be_used_are_said_at_once(options: dict[str, Any], message: str) -> None:
    """The constructor names the option and the next step."""
    with pytest.raises(SettingError) as error:
        Bridge(**options)

    assert str(error.value).startswith(message)


def test_an_exporter_has_to_be_one() -> None:
    """Neither anything else, nor with options that it would not heed."""
    with pytest.raises(TypeError, match="a str is neither a SpanExporter nor a SpanProcessor"):
        Bridge("otlp")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="have no effect beside an exporter"):
        Bridge(CapturingExporter(), endpoint="http://localhost:4318")


def test_an_exporter_that_logs_entries_feeds_no_loop() -> None:
    """What the bridge's own thread logs is never taken."""

    class Chatty(CapturingExporter):
        def export(self, spans: Any) -> SpanExportResult:
            for entry in session_entries():
                bridge.feed(entry)
            return super().export(spans)

    with Bridge(Chatty()) as bridge:
        feed_session(bridge)
        assert bridge.flush()

    assert bridge.statistics()[:3] == (len(session_entries()), 0, 0)


@pytest.fixture(autouse=True)
def _hear_the_bridge(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The bridge's warnings go to the test and nowhere else."""
    with caplog.at_level(logging.WARNING, "otel_bridge"):
        yield


# switched off, or elsewhere, by the environment


def test_a_bridge_that_is_switched_off_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SDK_DISABLED is for whatever exporter there is; it is shut down all the same."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    exporter = CapturingExporter()
    threads = threading.active_count()
    with Bridge(exporter) as bridge:
        feed_session(bridge)
        assert threading.active_count() == threads
        assert bridge.flush()

    assert bridge.statistics() == BridgeStatistics(0, 0, 0, 0, 0, 0, 0, "")
    assert exporter.spans == []
    assert exporter.is_shut_down


def test_no_exporter_of_the_environments_is_no_matter_for_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_TRACES_EXPORTER chooses what is used where the program names none."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    exporter = CapturingExporter()
    with Bridge(exporter) as bridge, Bridge() as silent:
        feed_session(bridge)
        feed_session(silent)

    assert len(exporter.spans) == bridge.statistics().delivered > 0
    assert silent.statistics().entries == 0


def test_spans_go_to_the_console_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A span a line, as on the command line."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    with Bridge() as bridge:
        feed_session(bridge)

    names = [json.loads(line)["name"] for line in capfdbinary.readouterr().out.splitlines()]
    assert "debug_session lifetime" in names
    assert len(names) == bridge.statistics().delivered


def test_an_exporter_that_never_got_a_span_is_shut_down() -> None:
    """It belongs to the bridge, and may have threads of its own."""
    exporter = CapturingExporter()
    bridge = Bridge(exporter)
    bridge.close()

    assert exporter.is_shut_down
