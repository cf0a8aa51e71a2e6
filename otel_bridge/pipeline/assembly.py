"""Puts the parts of a tail together, and takes them apart in the right order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.settings import ExportSettings

STOP_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class TailSettings:
    """What a tail is told: where to read, where to begin, where to keep its state, what to send and where to."""

    paths: tuple[str, ...]
    start: str | None
    state_dir: Path | None
    mapping: MappingOptions
    export: ExportSettings
