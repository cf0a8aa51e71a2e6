"""What can be imported from the package itself, and what that costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import otel_bridge
import otel_bridge.testing

PUBLIC = [
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
TESTING = ["CannedReply", "CapturingExporter", "Receiver", "Request", "decode_spans", "session_entries"]


def test_the_public_names_are_these() -> None:
    """Nothing comes or goes unnoticed, and `dir` shows them all."""
    assert otel_bridge.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(otel_bridge))
    assert otel_bridge.testing.__all__ == TESTING


@pytest.mark.parametrize(
    ("module", "name"), [(otel_bridge, name) for name in PUBLIC] + [(otel_bridge.testing, name) for name in TESTING]
)
def test_every_public_name_is_there_and_documented(module: object, name: str) -> None:
    """Each can be had, is the same object each time, and says what it is."""
    found = getattr(module, name)

    assert found is getattr(module, name)
    assert found.__doc__
    assert "filler" not in found.__doc__  # as of a class that is compiled


@pytest.mark.parametrize("module", [otel_bridge, otel_bridge.testing])
def test_another_name_is_an_attribute_error(module: object) -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Bridges'"):
        _ = module.Bridges  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "program",
    [
        "import otel_bridge",
        "import otel_bridge.cli.main",
        "import otel_bridge; otel_bridge.convert",
        "import otel_bridge; otel_bridge.Span",
    ],
)
def test_importing_is_cheap(program: str) -> None:
    """What needs no network and no SDK imports neither."""
    loaded = "print(*{name.partition('.')[0] for name in sys.modules})"

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {program}; {loaded}"], capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()).isdisjoint({"requests", "grpc", "google", "opentelemetry"})
