"""`otel-bridge completion`: the script with which a shell completes this command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script.

    \b
    Examples:
      echo 'source <(otel-bridge completion bash)' >> ~/.bashrc                          bash, 4.4 or newer
      echo 'source <(otel-bridge completion zsh)' >> ~/.zshrc                            zsh, after compinit
      otel-bridge completion fish > ~/.config/fish/completions/otel-bridge.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None
    root = ctx.find_root()
    click.echo(completion(root.command, {}, "otel-bridge", "_OTEL_BRIDGE_COMPLETE").source())
