"""Values of a state file, taken for what they must be: a file is input like any other."""

from __future__ import annotations


def object_of(saved: object) -> dict[str, object]:
    """A JSON object, as a copy that may be taken apart. Raises TypeError for anything else."""
    if not isinstance(saved, dict):
        raise TypeError(f"no object: {type(saved).__name__}")
    return dict(saved)


def list_of(saved: object) -> list[object]:
    """A JSON array. Raises TypeError for anything else."""
    if not isinstance(saved, list):
        raise TypeError(f"no list: {type(saved).__name__}")
    return saved


def integer_of(saved: object) -> int:
    """An integer. Raises TypeError for anything else."""
    if not isinstance(saved, int) or isinstance(saved, bool):
        raise TypeError(f"no integer: {type(saved).__name__}")
    return saved
