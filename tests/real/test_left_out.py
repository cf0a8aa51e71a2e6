"""What happens to tests whose real parts are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("ci", "workers"), [("false", "1"), ("true", "0")])
def test_missing_part_is_named(tmp_path: Path, ci: str, workers: str) -> None:
    """A test whose part is missing is left out by name on a developer's machine, and fails in CI."""
    test = "tests/real/test_parts.py::test_jaeger_shows_what_it_was_sent"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, test]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"CI": ci, "OTEL_BRIDGE_PARTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    if ci == "true":
        assert (done.returncode, "jaeger is not there: run make test" in done.stdout) == (1, True)
    else:
        assert (done.returncode, f"{test} (no jaeger)" in done.stdout) == (5, True)
