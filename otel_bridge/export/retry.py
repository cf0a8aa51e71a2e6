"""When to try again, and when to speak of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from otel_bridge.export.verdict import Misconfigured, TooLarge, TryLater

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits in seconds: they double from `first_s` to a maximum, which is longer for what a person has to mend.

    Trouble is said soon: a person who has just started a bridge wants to know that nobody listens.
    """

    first_s: float = 0.25
    max_s: float = 10.0
    misconfigured_max_s: float = 30.0
    warn_after_s: float = 2.0
    warn_every_s: float = 60.0


class Backoff:
    """Exponential waits with jitter; `random` gives a number from 0 to 1."""

    def __init__(self, policy: RetryPolicy, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._failures = 0

    def reset(self) -> None:
        """The backend answered: the next failure is a first one again."""
        self._failures = 0

    def next_s(self, trouble: TryLater | Misconfigured | TooLarge) -> float:
        """How long to wait after this failure, one more in a row. A wait that the backend asks for is never cut."""
        policy = self._policy
        max_s = policy.misconfigured_max_s if isinstance(trouble, Misconfigured) else policy.max_s
        wait_s = min(max_s, policy.first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        if isinstance(trouble, TryLater) and trouble.after_s is not None:
            return max(trouble.after_s, policy.first_s) * (1 + 0.1 * self._random())
        return wait_s * (0.5 + 0.5 * self._random())
