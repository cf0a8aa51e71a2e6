"""The compose file as values: read by the compose specification's own parser, so that what it refuses fails here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.parts import part

PROJECT = Path(__file__).parents[2]
COMPOSE_FILE = PROJECT / "docker-compose.yml"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file in a container: `volume` names a named volume, or `source` is a path of the project."""

    target: str
    volume: str | None
    source: Path | None
    read_only: bool


@dataclass(frozen=True, slots=True)
class Build:
    """How an image is built: a Dockerfile, and the stage of it or the last one."""

    dockerfile: Path
    stage: str | None


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the compose file.

    `network` is the service whose loopback it shares, mostly itself. `health` is the health check's command, with
    `CMD` or `CMD-SHELL` first. `waits_for` are the services that must be healthy before it starts. `raw` is all of it.
    """

    name: str
    image: str
    build: Build | None
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    network: str
    health: tuple[str, ...]
    waits_for: tuple[str, ...]
    profiles: tuple[str, ...]
    raw: Mapping[str, Any]


def parse(file: Path) -> Mapping[str, Any]:
    """A compose file in its normal form; AssertionError shows what the parser has against it."""
    done = subprocess.run(
        [part("compose"), "-format", "json", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def services(file: Path = COMPOSE_FILE) -> dict[str, Service]:
    """All services of a compose file, whatever their profile."""
    return {name: _service(name, raw) for name, raw in parse(file)["services"].items()}


def _service(name: str, raw: Mapping[str, Any]) -> Service:
    build = raw.get("build")
    conditions = {other: rule["condition"] for other, rule in raw.get("depends_on", {}).items()}
    assert set(conditions.values()) <= {"service_healthy"}, f"{name} does not wait for health: {conditions}"
    mode = raw.get("network_mode", "")
    return Service(
        name=name,
        image=raw["image"],
        build=Build(Path(build["context"]) / build["dockerfile"], build.get("target")) if build else None,
        command=tuple(raw.get("command") or ()),
        environment={key: value or "" for key, value in raw.get("environment", {}).items()},
        mounts=tuple(map(_mount, raw.get("volumes", []))),
        network=mode.removeprefix("service:") or name,
        health=tuple(raw["healthcheck"]["test"]),
        waits_for=tuple(conditions),
        profiles=tuple(raw.get("profiles", ())),
        raw=raw,
    )


def _mount(raw: Mapping[str, Any]) -> Mount:
    named = raw["type"] == "volume"
    source = raw["source"]
    return Mount(raw["target"], source if named else None, None if named else Path(source), raw.get("read_only", False))
