"""What the pump tells the worker, through their pipe."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.frame import Direction, Frame, Gap
from otel_bridge.wrapper.records import Configuration, Record, RecordReader, ServerEnd, packed

numbers = st.integers(0, (1 << 64) - 1)
directions = st.sampled_from(Direction)
records = st.one_of(
    st.builds(Frame, directions, numbers, numbers, numbers, st.binary()),
    st.builds(Frame, directions, numbers, numbers, numbers, st.none(), st.binary(), st.binary()),
    st.builds(Gap, directions, numbers, numbers, numbers, numbers),
    st.builds(Configuration, st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.integers(), st.booleans()))),
    st.builds(ServerEnd, st.integers(-64, 255), numbers),
)


@given(told=st.lists(records, max_size=8), data=st.data())
def test_records_come_through_however_they_are_cut(told: list[Record], data: st.DataObject) -> None:
    """What is read is what was written, in its order."""
    stream = b"".join(map(packed, told))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    reader = RecordReader()

    read = [record for start, end in pairwise([0, *cuts, len(stream)]) for record in reader.feed(stream[start:end])]

    assert told == read


@pytest.mark.parametrize("body", [b"?", b"f", b"l", b"g1", b"c{", b"e[1]", b""])
def test_bytes_that_are_no_record_are_refused(body: bytes) -> None:
    """A pipe that somebody else writes to is an error, not a guess."""
    with pytest.raises((ValueError, TypeError)):
        RecordReader().feed(len(body).to_bytes(4, "little") + body)
