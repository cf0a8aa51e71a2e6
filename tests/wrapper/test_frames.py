"""The bytes of one direction as frames, whatever pieces they come in."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.entries.frame import Direction, Frame
from otel_bridge.wrapper.frames import END_BYTES, MAX_FRAME_BYTES, FrameCutter

LIMIT = 600
lines = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.integers(LIMIT - 2, LIMIT + 600).map(lambda size: bytes(33 + place % 90 for place in range(size))),
        st.sampled_from([b"", b"\r", b"   ", b'{"id":1}\r', "\u2028\u0085".encode()]),
    ).map(lambda line: line.replace(b"\n", b"")),
    max_size=12,
)


def model(stream: bytes) -> list[tuple[int, bytes | None, bytes, bytes]]:
    """What the frames of a whole stream are: size, content, ends; after the last newline there is none."""
    frames: list[tuple[int, bytes | None, bytes, bytes]] = []
    for line in stream.split(b"\n")[:-1]:
        if len(line) > LIMIT:
            frames.append((len(line), None, line[:END_BYTES], line[-END_BYTES:]))
        elif line.strip(b" \t\r"):
            frames.append((len(line), line, b"", b""))
    return frames


@given(lines=lines, has_end=st.booleans(), data=st.data())
def test_frames_do_not_depend_on_the_reads(lines: list[bytes], has_end: bool, data: st.DataObject) -> None:
    """Any cutting of the stream into reads gives the frames that its lines are, numbered in order."""
    stream = b"\n".join(lines) + b"\n" * has_end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    cutter = FrameCutter(Direction.TO_CLIENT, LIMIT)

    frames: list[Frame] = []
    for start, end in pairwise([0, *cuts, len(stream)]):
        frames += cutter.feed(stream[start:end], end)

    assert model(stream) == [(frame.size_bytes, frame.data, frame.head, frame.tail) for frame in frames]
    assert list(range(len(frames))) == [frame.number for frame in frames]


def test_a_frames_time_is_that_of_its_last_byte() -> None:
    """The read that brought the newline tells the time."""
    cutter = FrameCutter(Direction.TO_SERVER)

    assert cutter.feed(b'{"a":', 1) == []
    (frame,) = cutter.feed(b"1}\n", 2)

    assert frame == Frame(Direction.TO_SERVER, 0, 2, 7, b'{"a":1}')


def test_a_frame_over_a_megabyte_is_counted_and_not_kept() -> None:
    """Only its size and its ends are known; the limit itself still is a whole frame."""
    cutter = FrameCutter(Direction.TO_CLIENT)

    (long,) = cutter.feed(b"[" + b"x" * MAX_FRAME_BYTES + b"\n", 1)
    (whole,) = cutter.feed(b"y" * MAX_FRAME_BYTES + b"\n", 1)

    assert (long.data, long.size_bytes) == (None, MAX_FRAME_BYTES + 1)
    assert long.head.startswith(b"[x")
    assert whole.data == b"y" * MAX_FRAME_BYTES
