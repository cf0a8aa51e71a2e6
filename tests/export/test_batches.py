from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.export.batches import Limits, Sending, cut
from otel_bridge.export.dead_letters import DeadLetter
from otel_bridge.export.encode import EncodedSpan
from otel_bridge.export.verdict import (
    Delivered,
    Misconfigured,
    PartlyRefused,
    Refused,
    TooLarge,
    TryLater,
    Verdict,
)

SPANS = st.lists(st.binary(min_size=1, max_size=30).map(EncodedSpan), max_size=40)
LIMITS = st.builds(Limits, st.integers(1, 10), st.integers(1, 100))


def numbered(count: int) -> list[EncodedSpan]:
    return [EncodedSpan(number.to_bytes(2)) for number in range(count)]


@given(SPANS, LIMITS)
def test_cut(spans: list[EncodedSpan], limits: Limits) -> None:
    """Parts keep every span in its order and stay within the limits, but for a span that is too large alone."""
    parts = cut(spans, limits)

    assert [span for part in parts for span in part] == spans
    assert all(len(part) <= limits.max_spans for part in parts)
    assert all(len(part) == 1 or sum(map(len, part)) <= limits.max_bytes for part in parts)


@given(SPANS, LIMITS)
def test_no_needless_parts(spans: list[EncodedSpan], limits: Limits) -> None:
    """A part ends only where the next span would not fit."""
    parts = cut(spans, limits)

    for part, following in itertools.pairwise(parts):
        longer = [*part, following[0]]
        assert len(longer) > limits.max_spans or sum(map(len, longer)) > limits.max_bytes


@given(st.integers(0, 60), st.sets(st.integers(0, 59)), LIMITS)
def test_bisection_finds_the_poisoned(count: int, poisoned: set[int], limits: Limits) -> None:
    """Exactly the spans that the backend refuses become letters; every other one is delivered once, in order."""
    spans = numbered(count)
    bad = {spans[number] for number in poisoned if number < count}
    sending = Sending(spans, limits)
    delivered: list[EncodedSpan] = []
    while part := sending.part:
        verdict: Verdict = Refused("bad", "HTTP 400") if bad & set(part) else Delivered()
        if isinstance(verdict, Delivered):
            delivered += part
        assert sending.settle(verdict, 7.0) is False

    assert delivered == [span for span in spans if span not in bad]
    assert (sending.delivered_spans, sending.settled_spans) == (len(delivered), count)
    assert sending.letters == [DeadLetter((span,), 1, "HTTP 400", "bad", 7.0) for span in spans if span in bad]


@given(st.integers(1, 60), st.integers(0, 12), st.booleans())
def test_halving(count: int, takes: int, is_final: bool) -> None:
    """A backend that takes only so many spans at once gets all; one that takes none refuses each, or makes it wait."""
    sending = Sending(numbered(count), Limits())
    sizes: list[int] = []
    while part := sending.part:
        if len(part) <= takes:
            sizes.append(len(part))
            sending.settle(Delivered(), 0.0)
        elif sending.settle(TooLarge("too large", "HTTP 413", is_final=is_final), 0.0):
            break

    if takes:
        assert sum(sizes) == count
        assert sending.letters == []
    elif is_final:
        assert len(sending.letters) == count
    else:
        assert (len(sending.part), sending.settled_spans) == (1, 0)


def test_few_requests_for_one_poisoned_span() -> None:
    """One refused span among 500 costs at most 19 requests."""
    spans = numbered(500)
    for poisoned in (0, 249, 250, 499):
        sending = Sending(spans, Limits())
        requests = 0
        while part := sending.part:
            requests += 1
            sending.settle(Refused("bad", "HTTP 400") if spans[poisoned] in part else Delivered(), 0.0)

        assert requests <= 19
        assert sending.delivered_spans == 499


def test_what_waits_stays() -> None:
    """A part that has to wait is the next one again, as it was."""
    sending = Sending(numbered(3), Limits())
    for verdict in (TryLater("busy"), Misconfigured("wrong path")):
        part = sending.part
        assert sending.settle(verdict, 0.0) is True
        assert sending.part == part
    assert sending.settled_spans == 0


def test_partial_success() -> None:
    """A partial success is final: all its spans become one letter that says how many of them were refused."""
    spans = numbered(3)
    sending = Sending(spans, Limits())
    sending.settle(PartlyRefused(2, "too old"), 1.0)

    assert sending.letters == [DeadLetter(tuple(spans), 2, "partial success", "too old", 1.0)]
    assert (sending.delivered_spans, sending.settled_spans) == (1, 3)


def test_partial_success_that_counts_too_far() -> None:
    """A backend that claims to have refused more spans than it was sent refused all of them."""
    sending = Sending(numbered(3), Limits())
    sending.settle(PartlyRefused(99, ""), 1.0)

    assert sending.delivered_spans == 0
    assert sending.letters[0].refused_count == 3


def test_is_full() -> None:
    """A batch is full by its spans or by its bytes."""
    limits = Limits(10, 100)

    assert [limits.is_full(9, 99), limits.is_full(10, 0), limits.is_full(0, 100)] == [False, True, True]
