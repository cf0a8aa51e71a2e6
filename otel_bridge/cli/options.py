"""Options that several commands share, and the values they become."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from otel_bridge.errors import SettingError
from otel_bridge.mapping_options import resolve_mapping_options
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.settings import Exporter, ExportSettings, resolve_export_settings

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_YEAR_S = 31_536_000


class Duration(click.ParamType[int]):
    """A duration such as `90s`, `15m` or `1h`, as milliseconds; a bare number is seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d)?", str(value).strip())
        duration_ms = int(float(found[1]) * _UNITS_MS[found[2] or "s"]) if found else 0
        if duration_ms <= 0:
            self.fail(f"{value!r} is no duration above zero; write it like 90s, 15m or 1h", param, ctx)
        return duration_ms


class Seconds(click.ParamType[float]):
    """A number of seconds above zero that a clock can wait for; a year at most, and neither `nan` nor `inf`."""

    name = "seconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= _YEAR_S:  # nan is neither
            self.fail(f"{value!r} is no number of seconds above zero, at most {_YEAR_S:,} (a year)", param, ctx)
        return seconds


def export_options(command: Command) -> Command:
    """Where spans go: `exporter`, `endpoint`, `protocol`, `header` and `service_name`."""
    for option in reversed(
        (
            click.option(
                "--exporter",
                type=click.Choice(["otlp", "console"]),
                default=None,
                help="otlp (default), or console: a span a line as JSON, no backend needed. Else OTEL_TRACES_EXPORTER.",
            ),
            click.option(
                "--endpoint",
                metavar="BASE_URL",
                default=None,
                help="The backend, as OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is added unless it is there. "
                "Default http://localhost:4318 (gRPC: 4317).",
            ),
            click.option(
                "--protocol",
                type=click.Choice(["http/protobuf", "grpc"]),
                default=None,
                help="OTLP over HTTP (default) or gRPC.",
            ),
            click.option(
                "--header", metavar="K=V", multiple=True, help="A header of every export request; may be repeated."
            ),
            click.option("--service-name", metavar="NAME", default=None, help="service.name; default mcp-debugger."),
        )
    ):
        command = option(command)
    return command


def mapping_options(command: Command) -> Command:
    """What a log becomes: `capture` and `idle_timeout`."""
    for option in reversed(
        (
            click.option(
                "--capture",
                type=click.Choice([level.name.lower() for level in Capture]),
                default="arguments",
                show_default=True,
                help="What leaves the machine: metadata (names, times, states, places), arguments (also tool arguments "
                "and error messages), full (also results, values and program output). Always redacted.",
            ),
            click.option(
                "--idle-timeout",
                type=Duration(),
                default="1h",
                show_default=True,
                help="Silence of a log after which its open sessions count as over.",
            ),
        )
    ):
        command = option(command)
    return command


def dap_option(command: Command) -> Command:
    """`dap_trace`: where DAP traces lie that are not beside their log."""
    return click.option(
        "--dap-trace",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="PATH",
        help="A DAP trace (DAP_TRACE=1), or a folder of them, that is not beside its log; may be repeated.",
    )(command)


def export_settings(options: dict[str, Any]) -> ExportSettings:
    """The settings of the options of `export_options`, taken out of `options`; flags win over variables.

    Raises SettingError where the environment switches the export off: a command that exports has nothing to do then,
    and must not take for delivered what it only read.
    """
    settings = any_export_settings(options)
    if settings.exporter is Exporter.NONE:
        raise SettingError(settings.notices[-1], "unset the variable for this command")
    return settings


def any_export_settings(options: dict[str, Any]) -> ExportSettings:
    """As `export_settings`, for a command that has something to do without an export too."""
    return resolve_export_settings(
        exporter=options.pop("exporter"),
        endpoint=options.pop("endpoint"),
        protocol=options.pop("protocol"),
        headers=options.pop("header"),
        service_name=options.pop("service_name"),
    )


def mapping_settings(options: dict[str, Any]) -> MappingOptions:
    """The settings of the options of `mapping_options`, taken out of `options`."""
    return resolve_mapping_options(options.pop("capture"), options.pop("idle_timeout"))
