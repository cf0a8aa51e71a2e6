"""`otel-bridge status`: what a bridge follows and how far it is, while it runs or after."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from otel_bridge.cli.state_dir import state_dir_option


@click.command("status")
@state_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(state_dir: Path | None, as_json: bool) -> None:
    """What is followed, delivered, refused, and what is behind.

    It only looks: a bridge that runs is neither stopped nor slowed down. On a terminal it prints tables; under a pipe a
    line a fact, separated by tabs, with plain numbers: bytes, seconds, Unix milliseconds. A `run` is a bridge too: it
    has a row of its own, and no part in the totals, which are those of `tail`.

    \b
    Examples:
      otel-bridge status
      otel-bridge status --json | jq .lag_bytes
      otel-bridge status --state-dir /var/lib/otel-bridge | grep '^file'
    """
    from otel_bridge.cli.status_report import Status, tab_separated
    from otel_bridge.state.place import refuse_file, state_folder
    from otel_bridge.state.reading import read_state
    from otel_bridge.view.escape import printable

    folder = state_folder(state_dir)
    refuse_file(folder)
    view = read_state(folder)
    status = Status.of(folder, view, int(time.time() * 1000))
    if as_json:
        # All but ASCII escaped: so it can hold paths that are no UTF-8, and nothing that a terminal acts on.
        click.echo(json.dumps(status.to_json(), indent=2, ensure_ascii=True))
    elif view is None and not status.runs and not status.kept.is_there:
        click.echo(
            f"no bridge has kept state in {printable(str(folder))}; "
            "start one with `otel-bridge tail`, or name its folder with --state-dir"
        )
    elif sys.stdout.isatty():
        from otel_bridge.cli.status_tables import print_tables

        print_tables(status, sys.stdout)
    else:
        click.echo("\n".join(tab_separated(status)))
