"""`otel-bridge doctor`: checks logs, endpoint and state, and says what to do."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from otel_bridge import __version__
from otel_bridge.cli.options import export_options, export_settings
from otel_bridge.cli.state_dir import state_dir_option
from otel_bridge.errors import SettingError

if TYPE_CHECKING:
    from otel_bridge.cli.findings import Finding


@click.command("doctor")
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@state_dir_option
@export_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(paths: tuple[str, ...], state_dir: Path | None, as_json: bool, **options: Any) -> None:
    """Check logs, endpoint and state, and say what to do.

    PATH is what `tail` would be given; without it the places are checked where the server logs by default. The endpoint
    is sent an empty request. Nothing is changed. Exit status: 0 all is well or at least works, 1 something does not.

    \b
    Examples:
      otel-bridge doctor
      otel-bridge doctor /var/log/mcp-debugger --endpoint http://collector:4318
      otel-bridge doctor --json | jq '.findings[] | select(.level == "fail")'
    """
    from otel_bridge.cli.findings import Level

    findings = list(examine(paths, state_dir, options))
    has_failed = any(finding.level is Level.FAIL for finding in findings)
    if as_json:
        click.echo(json.dumps({"ok": not has_failed, "findings": [asdict(finding) for finding in findings]}, indent=2))
    elif sys.stdout.isatty():
        print_findings(findings, sys.stdout)
    else:
        click.echo("\n".join(tab_separated(findings)))
    if has_failed:
        sys.exit(1)


def examine(paths: Sequence[str], state_dir: Path | None, options: dict[str, Any]) -> Iterator[Finding]:
    """Everything that is checked, one after the other; `options` are those of `export_options`."""
    from otel_bridge.cli import doctor_backend
    from otel_bridge.cli.doctor_logs import check_logs
    from otel_bridge.cli.doctor_state import check_state, look_at_state
    from otel_bridge.cli.findings import fail, ok
    from otel_bridge.cli.progress import followed_files
    from otel_bridge.state.place import state_folder
    from otel_bridge.state.reading import StateView

    yield ok("program", "otel-bridge", f"{__version__}, Python {platform.python_version()}, core {_language()}")
    folder = state_folder(state_dir)
    state = look_at_state(folder)
    followed = followed_files(state.checkpoints, state.path) if isinstance(state, StateView) else []
    yield from check_logs(paths or _default_places(), followed, int(time.time() * 1000), named=bool(paths))
    try:
        settings = export_settings(options)
    except SettingError as error:
        yield fail(doctor_backend.SETTING, "", error.message, error.hint)
    else:
        yield from doctor_backend.check_settings(settings)
        yield from doctor_backend.check_endpoint(settings)
    yield from check_state(folder, state)


def _language() -> str:
    from otel_bridge.sessions import log_mapping

    return "in Python" if str(log_mapping.__file__).endswith(".py") else "compiled"


def _default_places() -> Sequence[str]:
    from otel_bridge.sources.discovery import default_places
    from otel_bridge.sources.processes import Holders

    return default_places(Holders())()


def tab_separated(findings: Sequence[Finding]) -> Iterator[str]:
    """A line a finding: level, topic, subject, text, next step; escaped, so that a line has no tabs but these."""
    from otel_bridge.view.escape import printable

    for one in findings:
        yield "\t".join(printable(cell) for cell in (one.level, one.topic, one.subject, one.text, one.next_step))


def print_findings(findings: Sequence[Finding], stream: TextIO) -> None:
    """The same for people: what to do stands below each finding that asks for it."""
    from rich.text import Text

    from otel_bridge.cli.findings import Level
    from otel_bridge.view.escape import printable
    from otel_bridge.view.terminal import console_for, is_ascii_only

    ascii_only = is_ascii_only(stream)
    console = console_for(stream)
    styles = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}
    for one in findings:
        about = f"{one.topic} {one.subject}" if one.subject else one.topic
        line = Text.assemble(
            (f"{one.level:<6}", styles[one.level]), printable(f"{about}: {one.text}", ascii_only=ascii_only)
        )
        console.print(line)
        if one.next_step:
            console.print(Text(f"      {printable(one.next_step, ascii_only=ascii_only)}", "italic"))
    counts = {level: sum(one.level is level for one in findings) for level in Level}
    console.print(f"{counts[Level.OK]} ok, {counts[Level.WARN]} to look at, {counts[Level.FAIL]} to mend")
