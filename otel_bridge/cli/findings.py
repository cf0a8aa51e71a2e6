"""What `otel-bridge doctor` finds, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How good or bad a finding is. Only `fail` makes the exit status 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: `subject` is a path or an address, `next_step` is empty where nothing is to be done.

    Texts can hold names of files and words of a backend: they are escaped where they are shown. Headers and user info
    are in none.
    """

    level: Level
    topic: str
    subject: str
    text: str
    next_step: str = ""


def ok(topic: str, subject: str, text: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, topic, subject, text)


def warn(topic: str, subject: str, text: str, next_step: str) -> Finding:
    """It works, but maybe not as it was meant."""
    return Finding(Level.WARN, topic, subject, text, next_step)


def fail(topic: str, subject: str, text: str, next_step: str) -> Finding:
    """It does not work."""
    return Finding(Level.FAIL, topic, subject, text, next_step)
