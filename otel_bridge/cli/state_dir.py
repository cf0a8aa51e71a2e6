"""The option that names the state folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def state_dir_option(command: Command) -> Command:
    """`--state-dir`, as `state_dir`: what `otel_bridge.state.place.state_folder` takes for its argument."""
    option = click.option(
        "--state-dir",
        type=click.Path(path_type=Path),
        default=None,
        metavar="DIR",
        help="The folder with the state. Default: OTEL_BRIDGE_STATE_DIR, else the platform's state folder.",
    )
    return option(command)
