"""Puts the parts of a tail together, and takes them apart in the right order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.delivery import Delivery
from otel_bridge.export.encode import RequestEncoder
from otel_bridge.export.resource import Scope
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.pipeline.mapping_stage import MappingStage
from otel_bridge.pipeline.tail import Tail
from otel_bridge.pipeline.transports import transport_for
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.saved import restore
from otel_bridge.settings import ExportSettings
from otel_bridge.sources import Checkpoint, Follower, Start
from otel_bridge.sources.discovery import default_places
from otel_bridge.sources.watching import watch
from otel_bridge.state.place import state_folder
from otel_bridge.state.store import StateStore

STOP_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class TailSettings:
    """What a tail is told: where to read, where to begin, where to keep its state, what to send and where to."""

    paths: tuple[str, ...]
    start: str | None
    state_dir: Path | None
    mapping: MappingOptions
    export: ExportSettings
