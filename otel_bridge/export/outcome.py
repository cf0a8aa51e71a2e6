"""What a delivery has to show, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statistics:
    """A look at the delivery: totals since its start, and what is in the air now.

    `lost_spans` were refused and found no place among the dead letters (there are none, or they are full).
    `trouble` says why nothing gets through at the moment, `last_error` what went wrong last, however long ago;
    `needs_action` means that it stays so until somebody acts. `lag_s` is how long the oldest batch has been in the air.
    """

    delivered_spans: int = 0
    refused_spans: int = 0
    lost_spans: int = 0
    in_flight_batches: int = 0
    in_flight_spans: int = 0
    lag_s: float = 0.0
    trouble: str = ""
    needs_action: bool = False
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of all batches, at the end. `left_spans` and `left_batches` have no verdict: they are to be read again.

    `reason` says why some are left; `was_answered` that the backend said something last, or that a setting kept it from
    being asked: starting one does not help then.
    """

    delivered_spans: int
    refused_spans: int
    lost_spans: int
    left_spans: int
    left_batches: int
    reason: str = ""
    was_answered: bool = False
