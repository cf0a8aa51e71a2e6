"""The OpenTelemetry Collector's filelog receiver, as a user would set it up today: it parses, and builds no spans."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from benchmarks.processes import Used, cpu_s, peak_bytes
from tests.real.collector import Collector
from tests.waiting import wait_until

FILTER = r'not (body matches "\"message\":\\s*\"(tool|debug|session):")'
_RECORDS = re.compile(r'"log records": (\d+)')


def filelog(folder: Path, log: Path) -> Collector:
    """A collector that keeps the entries of `log`, parses them, and sends them nowhere."""
    return _collector(folder, log, "debug", {"verbosity": "basic"})


def sending(folder: Path, log: Path, endpoint: str) -> Collector:
    """A collector that sends what it has parsed to an endpoint, over OTLP/HTTP and at once."""
    return _collector(folder, log, "otlp_http", _at_once(endpoint))


def keeping_its_place(folder: Path, logs: str, endpoint: str) -> Collector:
    """The same of all logs that match a pattern, knowing on the disk how far it came, and trying again what failed."""
    place = folder / "place"
    place.mkdir(parents=True)
    receiver = {"storage": "file_storage", "retry_on_failure": {"enabled": True}}
    extensions = {"file_storage": {"directory": str(place)}}
    return _collector(folder, logs, "otlp_http", _at_once(endpoint), receiver, extensions)


def _at_once(endpoint: str) -> Mapping[str, object]:
    return {"endpoint": endpoint, "compression": "none", "sending_queue": {"enabled": False}}


def _collector(
    folder: Path,
    logs: Path | str,
    exporter: str,
    settings: Mapping[str, object],
    receiver: Mapping[str, object] = MappingProxyType({}),
    extensions: Mapping[str, object] = MappingProxyType({}),
) -> Collector:
    config = {
        "extensions": dict(extensions),
        "receivers": {
            "filelog": {
                "include": [str(logs)],
                "start_at": "beginning",
                "operators": [{"type": "filter", "expr": FILTER}, {"type": "json_parser"}],
                **receiver,
            }
        },
        "exporters": {exporter: settings},
        "service": {
            "extensions": list(extensions),
            "pipelines": {"logs": {"receivers": ["filelog"], "exporters": [exporter]}},
            # Every batch is said, so that the end can be seen: one short line a hundred entries.
            "telemetry": {"metrics": {"level": "none"}, "logs": {"sampling": {"enabled": False}}},
        },
    }
    return Collector(folder, config)


def parsed(collector: Collector) -> int:
    """How many entries it has parsed so far, by its own words."""
    return sum(int(count) for count in _RECORDS.findall(collector.output))


def read_whole(folder: Path, log: Path, entries: int) -> Used:
    """What a collector uses from its start until it has parsed all `entries` of a log."""
    collector = filelog(folder, log)
    started_s = time.perf_counter()
    with collector:
        wait_until(lambda: parsed(collector) >= entries, f"filelog has parsed {entries} entries", 300)
        wall_s = time.perf_counter() - started_s
        assert collector.process is not None
        return Used(wall_s, cpu_s(collector.process.pid), peak_bytes(collector.process.pid))


class LogRecords:
    """A backend for log records: takes every request, and knows afterwards what was in them."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def entries(self) -> Iterator[tuple[str, int]]:
        """The `message` and the number `seq` of each record, as often as it came."""
        for body in self.bodies:
            request = ExportLogsServiceRequest.FromString(body)
            for resource in request.resource_logs:
                for scope in resource.scope_logs:
                    for record in scope.log_records:
                        values: dict[str, Any] = {one.key: one.value for one in record.attributes}
                        if "seq" in values:
                            yield values["message"].string_value, int(values["seq"].double_value)
