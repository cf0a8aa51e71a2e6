"""`otel-bridge show`: a waterfall in the terminal, no backend."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from otel_bridge.cli.options import dap_option, mapping_options, mapping_settings
from otel_bridge.errors import SourceError


@click.command("show")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--session", "session_id", metavar="ID", help="The session (or trace) to draw; the start of its id is enough."
)
@click.option("--all", "show_all", is_flag=True, help="Every span; by default a long session is shortened.")
@mapping_options
@dap_option
def command(
    paths: tuple[str, ...], session_id: str | None, show_all: bool, dap_trace: tuple[Path, ...], **options: Any
) -> None:
    """Draw the sessions of a log as waterfalls in the terminal; no backend needed.

    With several sessions and no --session it draws the first and lists the others.

    \b
    Examples:
      otel-bridge show server.log
      otel-bridge show server.log --session 806a0589
      otel-bridge show logs/ --session 806a0589 --capture full | less -R
    """
    from otel_bridge.pipeline.announcements import Announcer
    from otel_bridge.pipeline.mapping_stage import MappingStage
    from otel_bridge.pipeline.replay import expects_dap, mapped
    from otel_bridge.sessions.span import Span
    from otel_bridge.view.terminal import print_listing, print_trace
    from otel_bridge.view.totals import tally
    from otel_bridge.view.waterfall import DEFAULT_MAX_ROWS

    announcer = Announcer(lambda line: click.echo(line, err=True))
    stage = MappingStage(mapping_settings(options), announcer.malformed, expects_dap(dap_trace))
    traces: dict[int, list[Span]] = {}
    empty: list[str] = []
    unreadable: list[SourceError] = []
    now_ms = int(time.time() * 1000)
    told = (lambda *_: None), empty.append, unreadable.append
    for spans in mapped(paths, stage, now_ms, *told, dap_traces=dap_trace, copy=announcer.once):
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
    announcer.flush(final=True)
    for error in unreadable:
        announcer.once(str(error))
    if not traces and unreadable and not empty:
        sys.exit(1)  # why there is nothing to draw was said
    if not traces:
        raise _nothing_in(empty, paths)
    sessions = {trace_id: spans for trace_id, spans in traces.items() if len(spans) > 1}
    wanted = _wanted(session_id, traces) if session_id else next(iter(sessions or traces))
    print_trace(traces[wanted], sys.stdout, max_rows=None if show_all else DEFAULT_MAX_ROWS)
    if session_id is None and len(sessions) > 1:
        click.echo(f"\n{len(sessions)} sessions; draw another with --session ID:", err=True)
        print_listing(tally(span for spans in sessions.values() for span in spans), sys.stderr)
    if unreadable:
        sys.exit(1)


def _nothing_in(empty: Sequence[str], paths: Sequence[str]) -> SourceError:
    """The error for input without a span: `empty` are the logs without an entry, `paths` what was given."""
    what = (
        f"{', '.join(empty)}: no structured entry in it"
        if empty
        else f"{', '.join(paths)}: no session and no call in it"
    )
    return SourceError(what, "is it mcp-debugger's own log, at level info or debug?")


def _wanted(session_id: str, traces: dict[int, Any]) -> int:
    from otel_bridge.sessions.ids import trace_id_of_session

    start = session_id.replace("-", "").lower()
    found = [trace_id for trace_id in traces if f"{trace_id:032x}".startswith(start)]
    exact = trace_id_of_session(session_id)
    if exact in traces:
        return exact
    if len(found) == 1:
        return found[0]
    raise SourceError(
        f"{len(found) or 'no'} sessions begin with {session_id}",
        "give more of the id" if found else "`otel-bridge show PATH` without --session lists them",
    )
