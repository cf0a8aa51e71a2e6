"""Each file of `collector-config/` is started by a real collector, and answers as its head says."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.real.jaeger import Jaeger
from tests.real.parts import part
from tests.real.program import Program
from tests.stack.collectors import FILES, Config, PlacedCollector, load
from tests.stack.places import Places

TRACE_ID = "5b8aa5a2d2c872e8321cf37308d69df2"
READY = "Everything is ready"
"""What a collector logs when all its components are started."""

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def send(endpoint: str) -> int:
    """Sends one span by OTLP over HTTP; returns the status of the answer."""
    span = Span(
        trace_id=bytes.fromhex(TRACE_ID),
        span_id=bytes.fromhex("051581bf3cb55c13"),
        name="probe",
        start_time_unix_nano=1_700_000_000_000_000_000,
        end_time_unix_nano=1_700_000_001_000_000_000,
    )
    body = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])
    request = urllib.request.Request(
        f"{endpoint}/v1/traces", body.SerializeToString(), {"Content-Type": "application/x-protobuf"}
    )
    try:
        with _direct.open(request, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def hosts(*names: str) -> Places:
    """Places where each host has a loopback of its own."""
    return Places({name: name for name in names})


@pytest.mark.parametrize("path", sorted(FILES.glob("*.yaml")), ids=lambda path: path.name)
def test_head_says_when_what_and_what_if(path: Path) -> None:
    """Each file begins with when to use it, what it holds in memory, and what is lost when a part dies."""
    head = path.read_text().partition("\nreceivers:")[0]

    for promise in ("When to use it:", "What it holds in memory:", "What is lost when a part dies:"):
        assert promise in head


@pytest.mark.parametrize(
    ("file", "backends", "program"),
    [
        pytest.param("jaeger.yaml", ["jaeger"], "collector", marks=pytest.mark.real("collector", "jaeger")),
        pytest.param(
            "gateway-agent.yaml", ["gateway-1", "gateway-2"], "gateway", marks=pytest.mark.real("gateway", "jaeger")
        ),
    ],
)
def test_without_a_queue_the_answer_is_the_backends(
    tmp_path: Path, file: str, backends: list[str], program: str
) -> None:
    """With its backend away the collector answers 503; with it there it answers 200 when the span is stored."""
    places = hosts("collector", *backends)
    jaeger = Jaeger(tmp_path / "jaeger")
    for backend in backends:
        places.put(backend, 4317, jaeger.otlp_grpc_port)
    with PlacedCollector(tmp_path / "collector", "collector", file, places, program=program) as collector:
        assert send(collector.endpoint) == 503

        with jaeger:
            # The connection to a backend that was away is tried again with a pause.
            jaeger.wait_for(TRACE_ID, lambda spans: spans or send(collector.endpoint) == 200)
            assert [span["operationName"] for span in jaeger.wait_for(TRACE_ID)] == ["probe"]


@pytest.mark.real("collector", "jaeger")
def test_with_a_queue_a_span_outlives_the_collector(tmp_path: Path) -> None:
    """What grafana.yaml answered 200 to with Tempo away is on disk: it arrives after SIGKILL and a new start."""
    places = hosts("collector", "tempo")
    tempo = Jaeger(tmp_path / "tempo")
    places.put("tempo", 4317, tempo.otlp_grpc_port)
    with PlacedCollector(tmp_path / "collector", "collector", "grafana.yaml", places) as collector:
        assert send(collector.endpoint) == 200
        collector.kill()

        with tempo:
            collector.start()
            assert [span["operationName"] for span in tempo.wait_for(TRACE_ID)] == ["probe"]


def kafka_export(config: Config) -> None:
    """Leaves of gateway.yaml what Jaeger's binary has, at v0.140: its Kafka exporter."""
    del config["extensions"], config["processors"]["tail_sampling"]
    del config["exporters"]["kafka"]["sending_queue"]["storage"]
    config["service"] = {
        "telemetry": {"metrics": {"level": "none"}},
        "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["memory_limiter"], "exporters": ["kafka"]}},
    }


def kafka_receive(config: Config) -> None:
    """Makes of gateway-backend.yaml what Jaeger's binary has, at v0.140: one topic, and the exporter's older name."""
    del config["extensions"]
    traces = config["receivers"]["kafka"]["traces"]
    (traces["topic"],) = traces.pop("topics")
    config["exporters"] = {"otlp": config["exporters"]["otlp_grpc/backend"]}
    config["service"] = {
        "telemetry": {"metrics": {"level": "none"}},
        "pipelines": {"traces": {"receivers": ["kafka"], "processors": ["memory_limiter"], "exporters": ["otlp"]}},
    }


@pytest.mark.real("jaeger")
@pytest.mark.parametrize(("file", "change"), [("gateway.yaml", kafka_export), ("gateway-backend.yaml", kafka_receive)])
def test_kafka_leg_starts(tmp_path: Path, file: str, change: Callable[[Config], None]) -> None:
    """The Kafka components take their settings and start, in Jaeger's binary: no other that can be built here has them.

    It lacks the health check, the queue on disk and the newer names of two settings; without a broker nothing passes.
    The sampling of gateway.yaml is run in test_gateway, a queue on disk in the test of grafana.yaml.
    """
    places = hosts("collector", "kafka", "tempo-distributor")
    config = yaml.safe_load(places.rewrite((FILES / file).read_text(), "collector", {}))
    change(config)
    placed = tmp_path / file
    placed.write_text(yaml.safe_dump(config))

    broker = {"KAFKA_BROKER": f"127.0.0.1:{places.port('kafka', 9092)}"}
    with Program([part("jaeger"), "--config", placed], tmp_path / "output.log", broker) as program:
        program.wait_ready(lambda: READY in program.output, f"all of {file} is started")


DOCUMENTED = {
    "kafka receiver": {
        *("brokers", "protocol_version", "group_id", "initial_offset", "traces", "message_marking", "error_backoff"),
        *("traces.topics", "traces.encoding"),
        *("message_marking.after", "message_marking.on_error", "message_marking.on_permanent_error"),
        *("error_backoff.enabled", "error_backoff.max_elapsed_time"),
    },
    "kafka exporter": {
        *("brokers", "protocol_version", "traces", "traces.topic", "traces.encoding", "partition_traces_by_id"),
        *("producer", "producer.required_acks", "producer.compression"),
        *("sending_queue", "sending_queue.enabled", "sending_queue.storage"),
        *("retry_on_failure", "retry_on_failure.enabled", "retry_on_failure.max_elapsed_time"),
    },
}
"""Of the settings that the components document at v0.165, those that this project has looked up."""


def keys(section: Config, above: str = "") -> set[str]:
    """The dotted names of all settings of a section."""
    found: set[str] = set()
    for name, value in section.items():
        found |= {f"{above}{name}"} | (keys(value, f"{above}{name}.") if isinstance(value, dict) else set())
    return found


def test_kafka_leg_has_documented_settings_alone() -> None:
    """At v0.165, the demo's release, no binary here has the Kafka components: its documentation has their settings."""
    assert keys(load("gateway-backend.yaml")["receivers"]["kafka"]) <= DOCUMENTED["kafka receiver"]
    assert keys(load("gateway.yaml")["exporters"]["kafka"]) <= DOCUMENTED["kafka exporter"]
