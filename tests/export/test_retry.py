from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.export.retry import Backoff, RetryPolicy
from otel_bridge.export.verdict import Misconfigured, TooLarge, TryLater

POLICY = RetryPolicy(first_s=1.0, max_s=10.0, misconfigured_max_s=30.0)


def waits(count: int, trouble: TryLater | Misconfigured | TooLarge, random: float) -> list[float]:
    backoff = Backoff(POLICY, lambda: random)
    return [backoff.next_s(trouble) for _ in range(count)]


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (TryLater("x"), [1, 2, 4, 8, 10, 10]),
        (TooLarge("x", "gRPC OUT_OF_RANGE", is_final=False), [1, 2, 4, 8, 10, 10]),
        (Misconfigured("x"), [1, 2, 4, 8, 16, 30]),
    ],
)
def test_doubles(trouble: TryLater | Misconfigured | TooLarge, expected: list[float]) -> None:
    """Waits double up to the maximum of their kind; jitter takes at most half away."""
    assert waits(6, trouble, 1.0) == expected
    assert waits(6, trouble, 0.0) == [wait / 2 for wait in expected]


def test_asked_wait() -> None:
    """A wait that the backend asks for is kept: never shorter, at most a tenth longer, and never a busy loop."""
    assert waits(2, TryLater("x", 60.0), 0.0) == [60.0, 60.0]
    assert waits(1, TryLater("x", 60.0), 1.0) == [pytest.approx(66.0)]
    assert waits(1, TryLater("x", 0.0), 0.0) == [1.0]


def test_reset() -> None:
    """After an answer the first wait is short again."""
    backoff = Backoff(POLICY, lambda: 1.0)
    for _ in range(5):
        backoff.next_s(TryLater("x"))
    backoff.reset()

    assert backoff.next_s(TryLater("x")) == 1.0


@given(st.integers(0, 3000), st.floats(0, 1))
def test_any_number_of_failures(count: int, random: float) -> None:
    """However long an outage lasts, the wait stays within its bounds."""
    backoff = Backoff(POLICY, lambda: random)
    backoff._failures = count

    assert 0.5 <= backoff.next_s(TryLater("x")) <= 10
