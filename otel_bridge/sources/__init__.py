"""Bytes on disk, with their place: following logs through rotation, and reading finished ones.

Following (`tail`)::

    follower = Follower(["logs/"], start=Start.AUTO)         # or a function that gives the places anew (discovery.py)
    follower.restore(checkpoints)                            # before the first look; what the state holds
    follower.look()                                          # opens, notes; True when there is something to read
    for chunk in follower.read(max_bytes): ...               # Chunk: bytes of one generation, in order
    for notice in follower.notices(): ...                    # Notice: rotation, truncation, gap, ...; `is_loss`
    follower.checkpoint(generation, offset, last_entry_ms)   # Checkpoint to commit: all before `offset` is delivered
    follower.unsaved()                                       # Checkpoints of files found or grown: commit them too
    follower.checkpoint(generation, offset, ended=True)      # the chunk with ends_generation is delivered: commit, then
    follower.release(generation)                             #   ... the descriptor may be closed
    follower.gone()                                          # generations whose checkpoints are to be deleted
    follower.statistics(); follower.close()

One line splitter per `Chunk.generation`; `Chunk.chain` is "one log" for pairing. `look` and `read` may run in different
threads; `look` never waits for whoever reads. While nobody reads, files stay open and keep their bytes.

Finished files (`replay`)::

    for chain in order_files(paths): ...                     # FileChain: the files of one log, oldest first
    for block in read_blocks(path): ...                      # bytes, `.gz` unpacked; raises SourceError
"""

from __future__ import annotations

from otel_bridge.errors import SourceError
from otel_bridge.sources.chunk import ChainStatistics, Chunk, Statistics
from otel_bridge.sources.files import FileKey
from otel_bridge.sources.follower import Follower
from otel_bridge.sources.holding import Caps
from otel_bridge.sources.identity import Checkpoint
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.replay import FileChain, order_files, read_blocks, refuse
from otel_bridge.sources.starting import Only, Start

__all__ = [
    "Caps",
    "ChainStatistics",
    "Checkpoint",
    "Chunk",
    "FileChain",
    "FileKey",
    "Follower",
    "Notice",
    "NoticeKind",
    "Only",
    "SourceError",
    "Start",
    "Statistics",
    "order_files",
    "read_blocks",
    "refuse",
]
