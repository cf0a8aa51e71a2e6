"""A real Jaeger 1.76, the newest that can be built from its Go module (the demo stack runs 2.20: same architecture)."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.real.parts import part
from tests.real.ports import reserve_port
from tests.real.program import Program
from tests.waiting import wait_until

JsonObject = dict[str, Any]

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Jaeger(Program):
    """A Jaeger on loopback ports of its own, which it keeps over `kill` and `start`.

    It stores in memory, or in `badger_folder` where one is given, which survives a kill. `folder` gets its
    configuration and its output.
    """

    def __init__(self, folder: Path, *, badger_folder: Path | None = None, max_clock_skew_adjust_s: int = 0) -> None:
        self.otlp_http_port, self.otlp_grpc_port = reserve_port(), reserve_port()
        self._query_port, self._health_port = reserve_port(), reserve_port()
        self.http_endpoint = f"http://127.0.0.1:{self.otlp_http_port}"
        """Base URL for OTLP over HTTP."""
        self.grpc_endpoint = f"http://127.0.0.1:{self.otlp_grpc_port}"
        """Endpoint for OTLP over gRPC."""
        self.query_url = f"http://127.0.0.1:{self._query_port}"
        """Base URL of its page and its query API."""
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "jaeger.yaml"
        # JSON is YAML, and needs no writer of its own.
        config.write_text(json.dumps(self._config(badger_folder, max_clock_skew_adjust_s), indent=2))
        super().__init__([part("jaeger"), "--config", config], folder / "jaeger.log")

    def start(self) -> None:
        """Starts it, again on the same ports where it ran before; returns when it is healthy."""
        super().start()
        self.wait_ready(self._healthy, "Jaeger is healthy")

    def trace(self, trace_id: str | int) -> JsonObject | None:
        """The trace as its API shows it, or None when it knows none of that id (32 hex digits, or the number)."""
        digits = trace_id if isinstance(trace_id, str) else f"{trace_id:032x}"
        try:
            answer = self._get(f"{self.query_url}/api/traces/{digits}")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return None
            raise
        (found,) = answer["data"]
        return dict(found)

    def spans(self, trace_id: str | int) -> list[JsonObject]:
        """The spans of a trace as its API shows them, times in microseconds; none when it knows no such trace."""
        found = self.trace(trace_id)
        return list(found["spans"]) if found else []

    def warnings(self, trace_id: str | int) -> list[str]:
        """What Jaeger itself has against the trace: broken parents, adjusted clocks, doubled ids."""
        found = self.trace(trace_id)
        assert found is not None, f"Jaeger has no trace {trace_id}"
        carriers = [found, *found["spans"]]
        return [warning for carrier in carriers for warning in carrier.get("warnings") or []]

    def wait_for(
        self,
        trace_id: str | int,
        condition: Callable[[list[JsonObject]], object] = bool,
        what: str = "its spans are there",
        deadline_s: float = 30.0,
    ) -> list[JsonObject]:
        """The spans of a trace as soon as `condition` holds for them; AssertionError when it does not in time."""

        def met() -> list[JsonObject]:
            spans = self.spans(trace_id)
            return spans if condition(spans) else []

        return wait_until(met, f"{what} (trace {trace_id} in Jaeger)", deadline_s)

    def _healthy(self) -> bool:
        try:
            return bool(self._get(f"http://127.0.0.1:{self._health_port}/status"))
        except OSError:
            return False

    def _get(self, url: str) -> Any:
        with _direct.open(url, timeout=10) as reply:
            return json.load(reply)

    def _config(self, badger_folder: Path | None, max_clock_skew_adjust_s: int) -> Mapping[str, object]:
        backend: JsonObject = {"memory": {"max_traces": 100_000}}
        if badger_folder is not None:
            places = {"keys": str(badger_folder / "keys"), "values": str(badger_folder / "values")}
            backend = {"badger": {"directories": places, "ephemeral": False}}
        return {
            "service": {
                "extensions": ["jaeger_storage", "jaeger_query", "healthcheckv2"],
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
            "extensions": {
                "healthcheckv2": {"use_v2": True, "http": {"endpoint": f"127.0.0.1:{self._health_port}"}},
                "jaeger_query": {
                    "storage": {"traces": "store"},
                    "max_clock_skew_adjust": f"{max_clock_skew_adjust_s}s",
                    "http": {"endpoint": f"127.0.0.1:{self._query_port}"},
                    "grpc": {"endpoint": f"127.0.0.1:{reserve_port()}"},
                },
                "jaeger_storage": {"backends": {"store": backend}},
            },
            "receivers": {
                "otlp": {
                    "protocols": {
                        "http": {"endpoint": f"127.0.0.1:{self.otlp_http_port}"},
                        "grpc": {"endpoint": f"127.0.0.1:{self.otlp_grpc_port}"},
                    }
                }
            },
            "exporters": {"jaeger_storage_exporter": {"trace_storage": "store"}},
        }


def tags(span: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of a span, or of one of its `logs` (their `fields`), as Jaeger shows them."""
    return {tag["key"]: tag["value"] for tag in span.get("tags", span.get("fields", []))}
