"""Turns mcp-debugger's structured log into OpenTelemetry traces: a trace a debug session, a span a tool call.

    Bridge         takes the entries of a program itself and exports what they become
    BridgeHandler  the same as a handler of the standard library's logging
    convert        the lines of a log -> finished spans

Everything is imported when it is first asked for: importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from otel_bridge.entries.flaw import Flaw
    from otel_bridge.errors import BridgeError, SettingError
    from otel_bridge.inprocess.bridge import Bridge, BridgeStatistics
    from otel_bridge.inprocess.conversion import convert
    from otel_bridge.inprocess.handler import BridgeHandler
    from otel_bridge.sessions.capture import Capture
    from otel_bridge.sessions.span import Span, SpanEvent, SpanKind, SpanLink, StatusCode

__version__ = "0.1.0"

__all__ = [
    "Bridge",
    "BridgeError",
    "BridgeHandler",
    "BridgeStatistics",
    "Capture",
    "Flaw",
    "SettingError",
    "Span",
    "SpanEvent",
    "SpanKind",
    "SpanLink",
    "StatusCode",
    "__version__",
    "convert",
]

_MODULES = {
    "Bridge": "otel_bridge.inprocess.bridge",
    "BridgeError": "otel_bridge.errors",
    "BridgeHandler": "otel_bridge.inprocess.handler",
    "BridgeStatistics": "otel_bridge.inprocess.bridge",
    "Capture": "otel_bridge.sessions.capture",
    "Flaw": "otel_bridge.entries.flaw",
    "SettingError": "otel_bridge.errors",
    "Span": "otel_bridge.sessions.span",
    "SpanEvent": "otel_bridge.sessions.span",
    "SpanKind": "otel_bridge.sessions.span",
    "SpanLink": "otel_bridge.sessions.span",
    "StatusCode": "otel_bridge.sessions.span",
    "convert": "otel_bridge.inprocess.conversion",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        found: object = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
