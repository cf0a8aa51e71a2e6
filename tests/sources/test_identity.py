"""Checkpoints: what is remembered of a file, and when a file is the one that was meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.sources.files import FileKey, LocalFiles
from otel_bridge.sources.identity import Checkpoint, digest, holds

_TEXT = st.text(max_size=8)
_NUMBER = st.integers(0, 1 << 62)
_CHECKPOINTS = st.builds(
    Checkpoint,
    chain=_TEXT,
    order=_NUMBER,
    base=_TEXT,
    path=_TEXT,
    device=_NUMBER,
    inode=_NUMBER,
    head_bytes=_NUMBER,
    head_hash=_TEXT,
    offset_bytes=_NUMBER,
    seam_hash=_TEXT,
    size_bytes=_NUMBER,
    last_entry_ms=st.none() | _NUMBER,
    ended=st.booleans(),
)


@given(_CHECKPOINTS)
def test_a_checkpoint_survives_json(checkpoint: Checkpoint) -> None:
    """A checkpoint written as JSON and read again is the same."""
    assert checkpoint == Checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json())))


@pytest.mark.parametrize("name", ["chain", "order", "head_hash", "offset_bytes", "size_bytes"])
def test_a_checkpoint_with_a_missing_or_wrong_value_is_refused(name: str) -> None:
    """A saved value of another type is an error that names it, never a guess."""
    values = Checkpoint("c", 1, "b", "p", 1, 2, 3, "h", 4, "s", 5).to_json()

    with pytest.raises(ValueError, match=name):
        Checkpoint.from_json({**values, name: [1]})
    with pytest.raises(ValueError, match=name):
        Checkpoint.from_json({other: value for other, value in values.items() if other != name})


def test_generations_have_ids_of_their_own() -> None:
    """The id that chunks carry can be told from the checkpoint."""
    checkpoint = Checkpoint("server.log-1", 7, "b", "p", 1, 2, 3, "h", 4, "s", 5)

    assert ("server.log-1#7", FileKey(1, 2)) == (checkpoint.generation, checkpoint.key)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a" * 2000 + b"b" * 300 + b"more", True),
        (b"a" * 2000 + b"b" * 300, True),
        (b"a" * 2000 + b"b" * 299, False),
        (b"a" * 2000 + b"c" * 300, False),
        (b"x" + b"a" * 1999 + b"b" * 300, False),
        (b"", False),
    ],
)
def test_a_file_is_meant_when_head_and_seam_agree(tmp_path: Path, content: bytes, expected: bool) -> None:
    """A file holds a checkpoint when its first bytes and those before the offset are what they were."""
    (tmp_path / "x.log").write_bytes(content)
    checkpoint = Checkpoint("c", 1, "b", "p", 1, 2, 1024, digest(b"a" * 1024), 2300, digest(b"b" * 256), 2300)
    handle = LocalFiles().open(str(tmp_path / "x.log"))

    assert expected == holds(handle, checkpoint)
    handle.close()
