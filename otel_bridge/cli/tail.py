"""`otel-bridge tail`: follows logs and exports until stopped."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import click

from otel_bridge.cli.options import dap_option, export_options, export_settings, mapping_options, mapping_settings


@click.command("tail")
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@export_options
@mapping_options
@dap_option
@click.option(
    "--from",
    "start",
    type=click.Choice(["beginning", "now"]),
    default=None,
    help="Where to begin a log that was not followed before. Default: at the beginning of files that a server holds "
    "open or that were written in the last hour, at the end of older ones.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="Where to keep what survives a restart. Default: OTEL_BRIDGE_STATE_DIR, else the platform's state folder.",
)
def command(
    paths: tuple[str, ...], start: str | None, state_dir: Path | None, dap_trace: tuple[Path, ...], **options: Any
) -> None:
    """Follow logs and export until stopped (Ctrl-C, SIGTERM).

    PATH is a log, a folder of logs or a glob in quotes; what is not there yet is looked for again. Without PATH it
    looks where the server logs by default. A restart goes on where it was; what was not acknowledged is sent again.

    \b
    Examples:
      otel-bridge tail
      otel-bridge tail /var/log/mcp-debugger --endpoint http://collector:4318
      otel-bridge tail 'logs/debug-mcp-server-*.log' --protocol grpc --from now
    """
    from otel_bridge.pipeline.announcements import Announcer
    from otel_bridge.pipeline.assembly import TailSettings, running_tail

    export = export_settings(options)
    announcer = Announcer(lambda line: click.echo(line, err=True))
    for notice in export.notices:
        announcer.once(notice)
    stop = threading.Event()
    settings = TailSettings(paths, start, state_dir, mapping_settings(options), export, dap_trace)
    with running_tail(settings, announcer, stop) as tail:

        def on_signal(number: int, frame: FrameType | None) -> None:
            if stop.is_set():  # the second one: at once
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            stop.set()
            tail.wake.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, on_signal)
        tail.run(stop)
    sys.exit(0)
