"""Writes docs/cli.md from the commands' own help; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from otel_bridge.cli.main import COMMANDS, cli

PAGE = Path(__file__).parent / "cli.md"
WIDTH = 100


def page() -> str:
    """The whole page."""
    root = click.Context(cli, info_name="otel-bridge", max_content_width=WIDTH, terminal_width=WIDTH)
    parts = ["# The command line", "Written by `make docs` from the commands' own help.", _block(cli.get_help(root))]
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=root, max_content_width=WIDTH, terminal_width=WIDTH)
        parts += [f"## otel-bridge {name}", _block(command.get_help(context))]
    return "\n\n".join(parts) + "\n"


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current: run `make docs`")
    PAGE.write_text(page(), encoding="utf-8")
