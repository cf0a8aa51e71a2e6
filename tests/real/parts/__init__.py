"""The real parts that tests run against; `build.py` gets them."""

from __future__ import annotations

from pathlib import Path

from tests.real.parts.build import PARTS


def part(name: str) -> Path:
    """Where the part is; AssertionError says how to get it when it is not there."""
    found = PARTS[name].locate()
    assert found is not None, f"{name} is not there: run make test, or python tests/real/parts/build.py {name}"
    return found
