"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02


def wait_until(condition: Callable[[], T | None], what: str, deadline_s: float = 30.0) -> T:
    """Asks until `condition` returns something true, and returns that.

    AssertionError names `what` was awaited and the last answer when `deadline_s` seconds have passed.
    """
    end = time.monotonic() + deadline_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"after {deadline_s:g} s still not so: {what} (last answer: {answer!r})")
        time.sleep(POLL_S)
