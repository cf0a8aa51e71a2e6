"""Writes docs/cli.md from the commands' own help; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from click.testing import CliRunner

from otel_bridge.cli.main import COMMANDS, cli

PAGE = Path(__file__).parent / "cli.md"


def page() -> str:
    """The whole page."""
    parts = ["# The command line", "Written by `make docs` from the commands' own help.", _help()]
    for name in COMMANDS:
        parts += [f"## otel-bridge {name}", _help(name)]
    return "\n\n".join(parts) + "\n"


def _help(*command: str) -> str:
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(cli, [*command, "--help"], prog_name="otel-bridge").output
    return f"```text\n{shown.rstrip()}\n```"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current: run `make docs`")
    PAGE.write_text(page(), encoding="utf-8")
