"""`otel-bridge replay`: exports what files hold, prints a line a session, and is done."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from otel_bridge.cli.options import (
    Seconds,
    dap_option,
    export_options,
    export_settings,
    mapping_options,
    mapping_settings,
)
from otel_bridge.export.bulletins import STILL_TRYING, Bulletin
from otel_bridge.settings import Exporter

SAY_TROUBLE_AFTER_S = 1.0
_FEWEST_TO_COLLECT = 50_000
STOPPED = 130
"""The exit status of what Ctrl-C stopped, as shells have it."""
PATIENCE_S = 30.0
"""How long a replay goes on trying when nothing gets through; a person waits for it."""


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@export_options
@mapping_options
@dap_option
@click.option(
    "--patience",
    type=Seconds(),
    default=PATIENCE_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to go on trying when nothing gets through.",
)
def command(paths: tuple[str, ...], patience: float, dap_trace: tuple[Path, ...], **options: Any) -> None:
    """Export what files hold, print a line a session with its trace id, and exit.

    PATH is a log, a folder of logs, a `.gz` of one, or `-` for standard input. The files of one rotation chain
    (server.log, server1.log, ...) are one log, in whatever order they are given.

    \b
    Examples:
      otel-bridge replay server.log
      otel-bridge replay logs/ --endpoint http://collector:4318 --service-name agent-7
      zcat old.log.gz | otel-bridge replay - --exporter console
    """
    # An entry and what becomes of it refer to each other nowhere in a circle: looking for circles after every 700 of
    # them was 6 % of the time.
    gc.set_threshold(_FEWEST_TO_COLLECT)
    from otel_bridge.export.delivery import Delivery
    from otel_bridge.export.encode import RequestEncoder
    from otel_bridge.export.resource import Scope
    from otel_bridge.export.retry import RetryPolicy
    from otel_bridge.export.transport import open_transport
    from otel_bridge.pipeline.announcements import Announcer
    from otel_bridge.pipeline.mapping_stage import MappingStage
    from otel_bridge.pipeline.replay import Replay, expects_dap
    from otel_bridge.view.terminal import print_listing

    settings = export_settings(options)
    announcer = Announcer(lambda line: click.echo(line, err=True))
    for notice in settings.notices:
        announcer.once(notice)
    stage = MappingStage(mapping_settings(options), announcer.malformed, expects_dap(dap_trace))
    transport = open_transport(settings)
    delivery = Delivery(
        transport,
        RequestEncoder(settings.resource, Scope()),
        None,
        lambda mark: None,
        on_bulletin=lambda bulletin: announcer.once(_with_patience(bulletin, patience)),
        policy=RetryPolicy(warn_after_s=SAY_TROUBLE_AFTER_S),
    )
    replay = Replay(stage, delivery, transport.endpoint, patience)
    gc.freeze()
    with _progress() as progress:
        try:
            outcome = replay.run(paths, int(time.time() * 1000), progress, dap_trace)
        except KeyboardInterrupt:
            delivered_spans = delivery.statistics().delivered_spans
            announcer.flush(final=True)
            announcer.once(f"stopped before the end; spans delivered: {delivered_spans:,}; {_again(paths)}")
            sys.exit(STOPPED)
    # the console exporter's data has standard output for itself
    listing = sys.stderr if settings.exporter is Exporter.CONSOLE else sys.stdout
    print_listing(replay.tally, listing)
    announcer.flush(final=True)
    joined = sum(log.mapping.partial_roots for log in stage.logs.values())
    if joined:
        announcer.once(
            f"sessions that began before these files do: {joined}; their roots differ from those of the whole log,"
            " and would show twice if it were replayed as well"
        )
    for copy in replay.copies:
        announcer.once(copy)
    problems = list(replay.problems(outcome))
    for problem in problems:
        announcer.once(problem)
    if outcome.left_spans:
        announcer.once(_again(paths))
    if problems:
        sys.exit(1)


def _with_patience(bulletin: Bulletin, patience_s: float) -> str:
    """What is said of trouble, with the end that a replay has where a delivery tries for ever."""
    return bulletin.text.replace(STILL_TRYING, f"gives up after {patience_s:g} s without success (--patience)")


def _again(paths: tuple[str, ...]) -> str:
    """What to do when a replay gave up: it keeps nothing, and needs to keep nothing."""
    still_there = "pipe the same input in again" if "-" in paths else "the files are as they were: run it again"
    return f"{still_there} when a backend takes spans; what was delivered already shows once all the same"


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, for replays that take more than a moment; nothing under a pipe."""
    if not sys.stderr.isatty():
        yield lambda path, read_bytes, size_bytes: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from otel_bridge.view.escape import printable

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as bar:
        tasks: dict[str, Any] = {}

        def show(path: str, read_bytes: int, size_bytes: int) -> None:
            if path not in tasks:
                tasks[path] = bar.add_task(escape(printable(path, 40)), total=size_bytes or None)
            bar.update(tasks[path], completed=read_bytes)

        yield show
