"""What may leave the machine."""

from __future__ import annotations

from enum import IntEnum


class Capture(IntEnum):
    """How much of a session leaves the machine; each level holds the ones before it."""

    METADATA = 0
    ARGUMENTS = 1
    FULL = 2
