"""The process beside the pump: takes the frames, follows the log, exports. `python -m otel_bridge.wrapper.worker`.

It ends by itself: when the pump says that the server has ended, or is gone itself, it delivers what is left within a
few seconds. What it could not deliver stays in the run's folder for the next run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from otel_bridge.cli.imports import leave_out_character_detection
from otel_bridge.cli.options import export_settings, mapping_settings
from otel_bridge.errors import BridgeError, StateError
from otel_bridge.export.resource import Resource
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.sessions.clip import clip_text
from otel_bridge.sessions.frame_mapping import FrameMapping, FrameOptions
from otel_bridge.sessions.frame_reader import FrameReader
from otel_bridge.sessions.redaction import redact_text
from otel_bridge.settings import DEFAULT_SERVICE_NAME
from otel_bridge.sources.processes import running
from otel_bridge.wrapper.inlet import Inlet
from otel_bridge.wrapper.journal import Journal
from otel_bridge.wrapper.live import LiveRun
from otel_bridge.wrapper.pickup import PickUp
from otel_bridge.wrapper.records import Configuration
from otel_bridge.wrapper.run_folder import Description, RunFolder
from otel_bridge.wrapper.run_tail import RunSettings, RunTail
from otel_bridge.wrapper.server import Server
from otel_bridge.wrapper.stderr import Stderr

_FIRST_RECORD_S = 30.0
_PICK_UP_S = 1.0
"""How long the taking up of earlier runs, which stops with this one, is waited for."""
_MAX_NAME_BYTES = 128


def main() -> int:
    """Serve the pump whose pipe is our standard input. 0 unless something went wrong that was not said."""
    stderr = Stderr()
    announcer = Announcer(stderr.write)
    inlet = Inlet(sys.stdin.fileno())
    first = inlet.first(_FIRST_RECORD_S)
    if not isinstance(first, Configuration):
        return 0  # the pump ended before it began
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    try:
        _serve(first.values, inlet, announcer, stop)
    except BridgeError as error:
        announcer.once(f"{error}; the server goes on without traces")
    finally:
        announcer.flush(final=True)
    return 0


def _serve(values: Mapping[str, Any], inlet: Inlet, announcer: Announcer, stop: threading.Event) -> None:
    options = dict(values["options"])
    export, mapping_options = export_settings(options), mapping_settings(options)
    for notice in export.notices:
        announcer.once(notice)
    folder = RunFolder.inherited(Path(values["folder"]), values["lock"]) if values["folder"] else None
    left = _described(folder, values["server"], export.resource, announcer) if folder else None
    settings = RunSettings(
        mapping_options,
        export,
        export.resource,
        Path(values["state_dir"]) if values["state_dir"] else None,
        folder.path if folder else None,
        left.log if left else None,
    )
    ending = threading.Event()
    until_ms = left.started_ms if left else time.time_ns() // 1_000_000
    pick_up = threading.Thread(target=PickUp(settings, until_ms, announcer, ending).run, name="picking up", daemon=True)
    try:
        live = _live_run(values, settings, left, inlet, announcer)
    except StateError as error:
        if left is None:
            raise
        announcer.once(f"{error}; calls are exported, states of the debugged program are not")
        left = None
        live = _live_run(values, replace(settings, folder=None, log=None), None, inlet, announcer)
    pick_up.start()
    is_done = live.run(stop, values["delivery_s"])
    ending.set()
    if folder:
        # Without a state nobody could tell what of it was delivered: what is left would be sent under other ids.
        if is_done or left is None:
            folder.remove()
        folder.release()
    pick_up.join(_PICK_UP_S)


def _described(folder: RunFolder, server: int, resource: Resource, announcer: Announcer) -> Description:
    """The folder's description, with what the pump did not know."""
    left = replace(folder.description(), server=running(server), resource=resource.attributes)
    try:
        folder.describe(left)
    except StateError as error:
        announcer.once(str(error))
    # The pump does it too, and has said why it cannot be; one of the two may live longer.
    with contextlib.suppress(StateError):
        folder.claim_log()
    return left


def _live_run(
    values: Mapping[str, Any], settings: RunSettings, left: Description | None, inlet: Inlet, announcer: Announcer
) -> LiveRun:
    """The run of a server that logs as `left` says; None: there is no log. Raises StateError when the state fails."""
    frames = FrameOptions(
        is_logged=left is not None,
        join_caller=values["join_caller"],
        from_ms=left.started_ms if left and not left.is_private else 0,
    )
    mapping = FrameMapping(settings.mapping, frames)
    reader = FrameReader(os.urandom(16), settings.mapping, is_debugger=values["is_debugger"])
    is_named = values["is_debugger"] or values["options"]["service_name"] or os.environ.get("OTEL_SERVICE_NAME")

    def open_tail(server_name: str) -> RunTail:
        named = settings if is_named else replace(settings, resource=_named(settings.resource, server_name))
        return RunTail.open(named, mapping, announcer)

    journal = Journal(settings.folder, announcer) if settings.folder else None
    server = Server(values["server"], values["pump"])
    return LiveRun(inlet, reader, mapping, announcer, open_tail, server, journal)


def _named(resource: Resource, server_name: str) -> Resource:
    """The resource of a server that is not mcp-debugger and was given no name: its own, as it says at the beginning."""
    if resource.attributes["service.name"] != DEFAULT_SERVICE_NAME:
        return resource
    name = clip_text(redact_text(server_name), _MAX_NAME_BYTES) or "mcp-server"
    return Resource({**resource.attributes, "service.name": name})


if __name__ == "__main__":
    leave_out_character_detection()
    os._exit(main())  # whoever does not read our stderr must not hold up the end
