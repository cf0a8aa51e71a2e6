from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from otel_bridge.export.transport import open_transport
from tests.export.backends import settings


@pytest.mark.parametrize(
    ("flags", "name", "endpoint"),
    [
        ({}, "HttpTransport", "http://localhost:4318/v1/traces"),
        ({"protocol": "grpc"}, "GrpcTransport", "localhost:4317"),
        ({"exporter": "console"}, "ConsoleTransport", "standard output"),
    ],
)
def test_open(flags: dict[str, Any], name: str, endpoint: str) -> None:
    """The settings choose the transport."""
    transport = open_transport(settings(**flags))
    transport.close()

    assert (type(transport).__name__, transport.endpoint) == (name, endpoint)


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "import otel_bridge.settings, otel_bridge.export.delivery, otel_bridge.export.encode",
            ["requests", "urllib3", "grpc", "opentelemetry", "google", "ssl"],
        ),
        (
            "from otel_bridge.settings import resolve_export_settings as resolve\n"
            "from otel_bridge.export.transport import open_transport\n"
            "open_transport(resolve({}))",
            ["grpc"],
        ),
        (
            "from otel_bridge.settings import resolve_export_settings as resolve\n"
            "from otel_bridge.export.transport import open_transport\n"
            "open_transport(resolve({}, protocol='grpc'))",
            ["requests", "urllib3", "opentelemetry.sdk"],
        ),
    ],
)
def test_imports(code: str, unwanted: list[str]) -> None:
    """Nobody pays for a library that their protocol does not need, and `--version` for none."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert [name for name in unwanted if name in json.loads(done.stdout)] == []
