"""The wheel where nothing can be compiled; `make test-compiled` and `make test-wheel` are about the one that was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_without_a_compiler_the_core_stays_python(tmp_path: Path) -> None:
    """The wheel is built all the same, for every platform, and why it is so is said."""
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    built = subprocess.run(words, cwd=PROJECT, env=os.environ | {"CC": "nonesuch"}, capture_output=True, text=True)

    assert built.returncode == 0, built.stderr
    assert "the core stays Python, which costs more CPU: no C compiler that finds Python.h (" in built.stderr
    assert [path.name.partition("-py3")[2] for path in tmp_path.glob("*.whl")] == ["-none-any.whl"]
