"""Every benchmark works. Its short form is run, and no figure of it is looked at: a slow machine fails nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

NEEDS = {
    "backfill": ("collector",),
    "latency": ("collector", "jaeger"),
    "idle": ("collector", "jaeger"),
    "sessions": ("collector",),
    "outage": (),
    "rotation": ("collector", "winston"),
    "startup": (),
    "pump": (),
    "handler": (),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.real(*parts)] if parts else []) for name, parts in NEEDS.items()]
)
def test_short_form_measures(tmp_path: Path, name: str) -> None:
    """A benchmark's short form ends well and gives figures, each with its unit."""
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--only", name, "--short", "--json", str(file)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert rows
    assert all(row["what"] and row["unit"] and isinstance(row["bridge"], (int, float)) for row in rows)


def test_every_benchmark_is_tried() -> None:
    """No benchmark is left out of the test above."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ", ".join(NEEDS) in " ".join(done.stdout.split())
