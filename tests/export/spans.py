"""Spans for the tests of the export: Hypothesis strategies for every shape, and a plain one by number."""

from __future__ import annotations

from hypothesis import strategies as st

from otel_bridge.sessions.span import AttributeValue, Span, SpanEvent, SpanKind, SpanLink, StatusCode

INT64 = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 1, -1, 127, 128, 2559, 2560, -(1 << 63)])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(["x" * 127, "ü" * 1500])
FLOATS = st.floats(allow_nan=True, allow_infinity=True)


def values() -> st.SearchStrategy[AttributeValue]:
    """Every type an attribute can have; equal values of different types (True, 1, 1.0) come often."""
    look_alikes: list[AttributeValue] = [True, 1, 1.0, False, 0, 0.0, -0.0, "1", (True,), (1,), (1.0,), ()]
    return st.one_of(
        st.sampled_from(look_alikes),
        TEXT,
        st.booleans(),
        INT64,
        FLOATS,
        st.lists(TEXT, max_size=3).map(tuple),
        st.lists(st.booleans(), max_size=3).map(tuple),
        st.lists(INT64, max_size=3).map(tuple),
        st.lists(FLOATS, max_size=3).map(tuple),
    )


KEYS = st.sampled_from(["a", "b", "debug.session.id"]) | TEXT.filter(bool)
ATTRIBUTES = st.dictionaries(KEYS, values(), max_size=6)
TRACE_IDS = st.integers(1, (1 << 128) - 1)
SPAN_IDS = st.integers(1, (1 << 64) - 1)
TIMES_NS = st.integers(946_684_800_000_000_000, 7_258_118_400_000_000_000)
TRACE_STATES = st.sampled_from(["", "vendor=value", "a=1,b@c=x y/z"])
EVENTS = st.builds(SpanEvent, TEXT, TIMES_NS, ATTRIBUTES)
LINKS = st.builds(SpanLink, TRACE_IDS, SPAN_IDS, TRACE_STATES, ATTRIBUTES, st.booleans())


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """Any span that the SDK can hold too: a status message stands only beside ERROR there."""
    status = draw(st.sampled_from(StatusCode))
    parent_id = draw(st.just(0) | SPAN_IDS)
    return Span(
        trace_id=draw(TRACE_IDS),
        span_id=draw(SPAN_IDS),
        parent_id=parent_id,
        name=draw(TEXT),
        kind=draw(st.sampled_from(SpanKind)),
        start_ns=draw(TIMES_NS),
        end_ns=draw(TIMES_NS),
        attributes=draw(ATTRIBUTES),
        events=tuple(draw(st.lists(EVENTS, max_size=3))),
        links=tuple(draw(st.lists(LINKS, max_size=2))),
        status=status,
        status_message=draw(TEXT) if status is StatusCode.ERROR else "",
        dropped_events=draw(st.integers(0, 400)),
        trace_state=draw(TRACE_STATES),
        is_parent_remote=draw(st.booleans()) if parent_id else False,
    )


def span(number: int, *, text: str = "") -> Span:
    """A plain span that is known by its number (1 or more); `text` makes it as large as a test wants."""
    return Span(
        trace_id=0xABC,
        span_id=number,
        parent_id=0,
        name=f"tools/call number_{number}",
        kind=SpanKind.SERVER,
        start_ns=1_700_000_000_000_000_000 + number,
        end_ns=1_700_000_000_000_001_000 + number,
        attributes={"debug.session.id": "abc", "text": text},
    )
