"""Each real part works as the other tests rely on."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from otel_bridge.testing import Receiver
from tests.calls import Outcome
from tests.real.collector import Collector
from tests.real.debug_client import FACT, FACT_LOOP, DebugClient
from tests.real.jaeger import Jaeger, tags
from tests.real.logrotate import copytruncate
from tests.real.ports import reserve_port
from tests.real.winston import Winston
from tests.waiting import wait_until


def export_span(endpoint: str) -> int:
    """Sends one span named `probe` by the SDK's own exporter; returns its trace id."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    with provider.get_tracer("tests").start_as_current_span("probe", attributes={"probe.number": 7}) as span:
        trace_id = span.get_span_context().trace_id
    provider.shutdown()
    return trace_id


def entries(log: Path) -> Iterator[dict[str, object]]:
    """The entries of a log."""
    return map(json.loads, log.read_bytes().splitlines())


@pytest.mark.real("jaeger")
def test_jaeger_shows_what_it_was_sent(jaeger: Jaeger) -> None:
    """A span that was exported to Jaeger is shown by its API, without warnings."""
    trace_id = export_span(jaeger.http_endpoint)

    (span,) = jaeger.wait_for(trace_id)
    assert span["operationName"] == "probe"
    assert tags(span)["probe.number"] == 7
    assert jaeger.warnings(trace_id) == []
    assert jaeger.trace(1) is None


@pytest.mark.real("jaeger")
def test_jaeger_on_disk_survives_a_kill(tmp_path: Path) -> None:
    """A Jaeger that stores on disk knows, after SIGKILL and a start on the same ports, what it had acknowledged."""
    with Jaeger(tmp_path / "jaeger", badger_folder=tmp_path / "store", max_clock_skew_adjust_s=10) as jaeger:
        trace_id = export_span(jaeger.http_endpoint)
        jaeger.kill()
        jaeger.start()

        assert [span["operationName"] for span in jaeger.wait_for(trace_id)] == ["probe"]


@pytest.mark.real("collector")
def test_collector_passes_spans_on_and_reads_logs(tmp_path: Path) -> None:
    """The collector hands a span to its backend before it answers, and its filelog receiver reads a log."""
    log = tmp_path / "some.log"
    log.write_text('{"message": "tool:call", "probe": 7}\n')
    port = reserve_port()
    with Receiver() as backend:
        config = {
            "receivers": {
                "otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}},
                "filelog": {"include": [str(log)], "start_at": "beginning"},
            },
            "exporters": {
                "otlp_http": {"endpoint": backend.endpoint, "sending_queue": {"enabled": False}},
                "debug": {"verbosity": "detailed"},
            },
            "service": {
                "pipelines": {
                    "traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]},
                    "logs": {"receivers": ["filelog"], "exporters": ["debug"]},
                }
            },
        }
        with Collector(tmp_path / "collector", config) as collector:
            trace_id = export_span(f"http://127.0.0.1:{port}")

            assert [span.trace_id for span in backend.spans] == [trace_id]
            wait_until(lambda: '"probe": 7' in collector.output, "the debug exporter shows the line")


@pytest.mark.real("server")
def test_server_logs_what_its_client_records(tmp_path: Path) -> None:
    """A session that was stepped through stands in the server's log with every call of the client's record."""
    log = tmp_path / "server.log"
    with DebugClient(tmp_path / "server", log_file=log, env={"DAP_TRACE": "1"}) as client:
        session_id = client.run_to_breakpoint("fact", FACT, FACT_LOOP)
        sums = client.gather(
            ("evaluate_expression", {"sessionId": session_id, "expression": f"total + {number}"}) for number in range(3)
        )
        failed = client.call("get_stack_trace", sessionId="no such session")
        client.call("close_debug_session", sessionId=session_id)

    assert [call["result"] for call in sums] == ["0", "1", "2"]
    assert (failed.outcome, failed.success) == (Outcome.RESULT, False)
    assert all(call.end_ms is not None and call.end_ms >= call.start_ms for call in client.calls)
    messages = [entry["message"] for entry in entries(log)]
    assert messages.count("session:created") == 1
    assert messages.count("tool:call") == len(client.calls)
    assert list(tmp_path.glob(f"sessions/{session_id}/run-*/dap-trace-*.ndjson"))


@pytest.mark.real("server")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "closed"])
def test_server_ends_under_a_call(tmp_path: Path, number: signal.Signals | None) -> None:
    """A call that is open when the server ends is no success in the client's record; only SIGTERM has it answered."""
    with DebugClient(tmp_path / "server", log_file=tmp_path / "server.log") as client:
        session_id = client.run_to_breakpoint("fact")
        sleeping = client.start("evaluate_expression", sessionId=session_id, expression="__import__('time').sleep(60)")
        wait_until(lambda: "sleep(60)" in (tmp_path / "server.log").read_text(), "the server has logged the call")
        if number is not None:
            client.signal(number)

    assert not client.alive
    open_call = sleeping.result()
    assert client.calls[-1] == open_call
    assert not open_call.success
    if number is not signal.SIGTERM:
        assert (open_call.outcome, open_call.end_ms) == (Outcome.NO_RESPONSE, None)


@pytest.mark.real("server")
def test_server_logs_by_default_beside_its_package(tmp_path: Path) -> None:
    """Without `--log-file` the server logs into the folder that is known as its default, and only there."""
    with DebugClient(tmp_path / "server", log_file=None) as client:
        client.create_session("default place")

    (log,) = client.default_log_folder.glob(f"debug-mcp-server-{client.pid}.log")
    assert "session:created" in {entry["message"] for entry in entries(log)}


@pytest.mark.real("winston")
def test_winston_rotates(tmp_path: Path) -> None:
    """The log that winston rotates is three files, whose entries are in order from the oldest file to the newest.

    Not every entry is there: a winston that can't keep up while it rotates loses some.
    """
    log = tmp_path / "rotating.log"
    with Winston(log, max_bytes=20_000, count=400, entries_per_second=1_000) as winston:
        logged, session_id = winston.wait()

    chain = [tmp_path / name for name in ("rotating2.log", "rotating1.log", "rotating.log")]
    kept = [entry for path in chain for entry in entries(path)]
    assert logged == 400
    assert {entry["sessionId"] for entry in kept} == {session_id}
    numbers = [int(str(entry["seq"])) for entry in kept]
    assert numbers == sorted(set(numbers))


@pytest.mark.real("logrotate")
def test_logrotate_copies_and_truncates(tmp_path: Path) -> None:
    """After `copytruncate` the content is in a new file, and the log itself is empty under its old inode."""
    log = tmp_path / "some.log"
    log.write_text("a line\n")
    inode = log.stat().st_ino

    copytruncate(log, tmp_path)

    assert (log.read_text(), log.stat().st_ino) == ("", inode)
    assert (tmp_path / "some.log.1").read_text() == "a line\n"
