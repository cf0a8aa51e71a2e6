"""What the mapping is told, from arguments and the OpenTelemetry SDK's variables for the limits of a span."""

from __future__ import annotations

import os

from otel_bridge.errors import SettingError
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.settings import Environment


def resolve_mapping_options(
    capture: str | Capture, idle_timeout_ms: int, environ: Environment = os.environ
) -> MappingOptions:
    """The options for a capture level (by name, in any case) and an idle timeout, with the environment's limits.

    Spans that are built directly would not heed the SDK's variables. Raises SettingError for a value that cannot be
    used.
    """
    default = MappingOptions()
    if idle_timeout_ms <= 0:
        raise SettingError("the idle timeout is not above zero", "give a time such as 3600 s")
    return MappingOptions(
        capture=_resolve_capture(capture),
        idle_timeout_ms=idle_timeout_ms,
        max_value_bytes=_resolve_limit(
            "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", default.max_value_bytes, least=64, environ=environ
        ),
        max_events=_resolve_limit("OTEL_SPAN_EVENT_COUNT_LIMIT", default.max_events, least=1, environ=environ),
    )


def _resolve_capture(capture: str | Capture) -> Capture:
    if isinstance(capture, Capture):
        return capture
    try:
        return Capture[capture.upper()]
    except KeyError:
        names = ", ".join(level.name.lower() for level in Capture)
        raise SettingError(f"capture: `{capture}` is not known", f"use one of {names}") from None


def _resolve_limit(variable: str, default: int, *, least: int, environ: Environment) -> int:
    value = environ.get(variable, "").strip()
    if not value:
        return default
    if not value.isdecimal() or int(value) < least:
        raise SettingError(f"{variable}: `{value}` is no number of at least {least}", "correct it, or unset it")
    return int(value)
