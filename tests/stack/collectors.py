"""The collector files of the project, each run as it stands by a real collector, at other addresses."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.real.parts import part
from tests.real.program import Program
from tests.stack.compose import PROJECT
from tests.stack.places import Places

FILES = PROJECT / "collector-config"
QUEUE = "/var/lib/otelcol"
HEALTH_PORT = 13133
OTLP_HTTP_PORT = 4318

Config = dict[str, Any]

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def load(name: str) -> Config:
    """A file of `collector-config/`, as it stands."""
    return dict(yaml.safe_load((FILES / name).read_text()))


class PlacedCollector(Program):
    """A collector with a file of `collector-config/` as the container `host`, healthy inside the block.

    `change` may change the configuration where a component can't be had. `folder` gets its queue, file and output.
    """

    def __init__(
        self,
        folder: Path,
        host: str,
        file: str,
        places: Places,
        *,
        program: str = "collector",
        change: Callable[[Config], object] = lambda config: None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        queue = folder / "queue"
        queue.mkdir(parents=True, exist_ok=True)
        config = yaml.safe_load(places.rewrite((FILES / file).read_text(), host, {QUEUE: queue}))
        change(config)
        placed = folder / file
        placed.write_text(yaml.safe_dump(config))
        self.endpoint = places.url(host, OTLP_HTTP_PORT)
        """Base URL for OTLP over HTTP."""
        self._health_url = places.url(host, HEALTH_PORT)
        super().__init__([part(program), "--config", placed], folder / "output.log", env)

    def start(self) -> None:
        """Starts it, again where it ran before; returns when it is healthy."""
        super().start()
        self.wait_ready(self._healthy, f"the collector {self.log.parent.name} is healthy")

    def _healthy(self) -> bool:
        try:
            with _direct.open(self._health_url, timeout=10) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False
