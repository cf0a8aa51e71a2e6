"""The command `otel-bridge`. A command's module is imported only when it is asked for: `--version` needs none."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from otel_bridge import __version__

COMMANDS = {
    "tail": "Follow logs and export until stopped.",
    "run": "Start an MCP server and export its tool calls as they pass.",
    "replay": "Export what files hold, print a line a session, exit.",
    "show": "Draw a session as a waterfall in the terminal; no backend needed.",
    "demo": "A recorded real session through the whole pipeline, drawn as a waterfall.",
    "status": "What is followed, delivered, refused, and what is behind.",
    "resend": "Send refused spans again.",
    "doctor": "Check logs, endpoint and state, and say what to do.",
    "completion": "Print the shell completion script.",
}
"""The commands and their one-line help; each is `otel_bridge.cli.<name>.command`."""


class LazyCommands(click.Group):
    """A group that imports the module of a command when it is run or its own help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"otel_bridge.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            if not close:
                raise
            raise click.UsageError(f"No such command '{args[0]}'. Did you mean '{close[0]}'?", error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="otel-bridge")
def cli() -> None:
    """Turn mcp-debugger's structured log into OpenTelemetry traces.

    A debug session becomes a trace, a tool call a span, exported over OTLP to Jaeger, Grafana or any other backend.

    \b
    Examples:
      otel-bridge demo                           see what it does; needs no backend
      otel-bridge tail                           follow the server's logs where it writes them by default
      otel-bridge tail /var/log/mcp --endpoint http://localhost:4318
      otel-bridge replay server.log              export a finished log
      otel-bridge show server.log                look at it in the terminal
    """


def main() -> NoReturn:
    """Runs the command. Exit status: 0 all delivered, 1 something was not (or could not be written), 2 usage."""
    from otel_bridge.cli.imports import leave_out_character_detection
    from otel_bridge.cli.streams import guard_streams
    from otel_bridge.errors import BridgeError

    guard_streams()
    leave_out_character_detection()
    try:
        try:
            cli(standalone_mode=True)
        finally:
            sys.stdout.flush()  # here, where it can be said that it failed
    except BridgeError as error:
        from otel_bridge.view.escape import printable

        click.echo(f"otel-bridge: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(1)  # as click does: whoever closed standard output has what it wanted
    sys.exit(0)
