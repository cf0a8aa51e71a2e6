"""Logs to be found by `doctor`, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from otel_bridge.cli.findings import Finding

CALL = '{"level":"info","message":"tool:call","timestamp":1700000000000,"tool":"x","sessionId":"s"}\n'
ERROR = '{"level":"error","message":"tool:error","timestamp":1700000000000,"tool":"x","error":"boom"}\n'
NOISE = '{"level":"info","message":"[ProxyManager] spawned","timestamp":"2023-11-14T22:13:20.000Z"}\n'


def write(path: Path, *lines: str) -> Path:
    """A log with these lines."""
    path.write_text("".join(lines))
    return path


def only(findings: Sequence[Finding]) -> Finding:
    """The one finding there is."""
    (finding,) = findings
    return finding
