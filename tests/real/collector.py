"""A real OpenTelemetry Collector; `parts/collector/builder.yaml` lists what is in it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.parts import part
from tests.real.ports import reserve_port
from tests.real.program import Program

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Collector(Program):
    """A collector that runs the configuration given, which it keeps over `kill` and `start`.

    A health check on a port of its own is added to the configuration, and its own metrics are turned off. For its
    200 to be the backend's word the configuration needs `sending_queue: {enabled: false}` and no batch processor.
    `folder` gets the configuration and its output, where the debug exporter writes.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._health_url = f"http://127.0.0.1:{(port := reserve_port())}/"
        service = config["service"]
        whole = {
            **config,
            "extensions": {**config.get("extensions", {}), "health_check": {"endpoint": f"127.0.0.1:{port}"}},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                **service,
                "extensions": [*service.get("extensions", []), "health_check"],
            },
        }
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "collector.yaml"
        file.write_text(json.dumps(whole, indent=2))
        super().__init__([part("collector"), "--config", file], folder / "collector.log")

    def start(self) -> None:
        """Starts it, again where it ran before; returns when it is healthy."""
        super().start()
        self.wait_ready(self._healthy, "the collector is healthy")

    def _healthy(self) -> bool:
        try:
            with _direct.open(self._health_url, timeout=10) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False
