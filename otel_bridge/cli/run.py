"""`otel-bridge run`: stands between an MCP client and its server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from otel_bridge.cli.options import any_export_settings, export_options, mapping_options, mapping_settings
from otel_bridge.settings import Exporter


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("server", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@export_options
@mapping_options
@click.option(
    "--join-caller",
    is_flag=True,
    help="Put each tool call into the trace of the agent that made it, where the request names one "
    "(params._meta.traceparent). Default: a link to it.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="Where to keep what survives a restart. Default: OTEL_BRIDGE_STATE_DIR, else the platform's state folder.",
)
def command(server: tuple[str, ...], join_caller: bool, state_dir: Path | None, **options: Any) -> None:
    """Start an MCP server as its client would, and export its tool calls as they pass.

    CMD is the server's command. Its standard input and output are the client's, byte for byte; whatever the bridge has
    to say goes to standard error. mcp-debugger gets a log file of its own (--log-file) unless it has one, so that debug
    sessions and states are traced too; of any other server each tool call becomes a trace. It is known by its package
    (@debugmcp/mcp-debugger), or by a part `mcp-debugger` of the path of the program that CMD runs; a path that is
    merely an argument of another server changes nothing, nor does one in a container.

    \b
    In an MCP client's configuration:
      "mcpServers": {
        "debugger": {
          "command": "uvx",
          "args": ["otel-bridge", "run", "--", "npx", "-y", "@debugmcp/mcp-debugger", "stdio"]
        }
      }

    \b
    Examples:
      otel-bridge run -- npx -y @debugmcp/mcp-debugger stdio
      otel-bridge run --endpoint http://collector:4318 --capture full -- node server.mjs
    """
    from otel_bridge.wrapper.launch import run

    # What cannot be used is said now, while somebody looks, and not by the worker.
    export = any_export_settings(dict(options))
    mapping_settings(dict(options))
    why_not = export.notices[-1] if export.exporter is Exporter.NONE else ""
    run(server, options, state_dir, join_caller=join_caller, why_not=why_not)
