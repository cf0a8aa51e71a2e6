"""A small world of real log files, and a model of what a reader can and cannot know of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from otel_bridge.sources import Caps, Checkpoint, Chunk, Follower, Notice, NoticeKind, Start
from otel_bridge.sources.identity import digest

SESSION = "5f0c1c1e-0000-4000-8000-000000000001"


class Clock:
    """A clock that only tests move."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(eq=False)
class Physical:
    """One inode: its name (None when it has none) and whether the reader that runs now has it open."""

    name: str | None
    inode: int
    seen: bool = False


@dataclass(eq=False)
class Content:
    """What one generation holds, as whole lines' numbers, and where those bytes lie now (None: nowhere)."""

    place: Physical | None
    lines: list[int] = field(default_factory=list)
    size: int = 0
    seen_size: int = 0
    left_empty: bool = False
    """Empty when the log went on elsewhere, and filled by a second writer only then: its place is by time alone."""
    copied: bool = False
    abandoned: bytes = b""
    half_number: int = 0
    head: bytes = b""
    kept: list[int] | None = None
    """Once the rest is lost: the lines that were received before."""


class Reader:
    """What the pipeline does with chunks: split them into lines, commit, and lose all of that in a crash."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.rest: dict[str, bytes] = {}
        self.position: dict[str, int] = {}
        self.ended: set[str] = set()
        self.received: list[tuple[int, bool]] = []
        self.halves: list[bytes] = []
        self.notices: list[Notice] = []

    def take(self, chunk: Chunk) -> None:
        rest = self.rest.get(chunk.generation, b"")
        if chunk.generation in self.position:
            assert chunk.start_byte == self.position[chunk.generation], "a chunk continues where the last one ended"
        self.position[chunk.generation] = chunk.start_byte + len(chunk.data)
        *lines, rest = (rest + chunk.data).split(b"\n")
        self.received += [(json.loads(line)["n"], chunk.late) for line in lines]
        self.rest[chunk.generation] = rest
        self.ended.discard(chunk.generation)
        if chunk.ends_generation:
            self.ended.add(chunk.generation)
            if rest:
                self.halves.append(rest)

    def read(self, max_bytes: int) -> Sequence[Chunk]:
        chunks = self.follower.read(max_bytes)
        for chunk in chunks:
            self.take(chunk)
        self.notices += self.follower.notices()
        return chunks


class World:
    """One log, written by one or two writers, rotated in some way, and a reader that may crash."""

    def __init__(self, folder: Path, caps: Caps | None = None) -> None:
        self.folder = folder
        self.clock = Clock()
        self.caps = caps
        self.count = 0
        self.time_ms = 1_700_000_000_000
        self.of_line: dict[int, Content] = {}
        self.half: tuple[bytes, int, bytes] | None = None
        self.store: dict[str, Checkpoint] = {}
        self.committed: list[tuple[int, bool]] = []
        self.committed_halves: list[bytes] = []
        self.lost_bytes = 0
        self.second_writer = False
        self.second: tuple[int, Content] | None = None
        self.writer = self._open("server.log")
        self.physical: list[Physical] = []
        self.current = Content(self._physical("server.log"))
        self.contents = [self.current]
        self.of_generation: dict[str, Content] = {}

        self.cut: list[Content] = []
        self.restarted = False
        self.reader = self._start()
        self.all_notices: list[Notice] = []

    # --- files

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def _open(self, name: str) -> int:
        return os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def line(self, pad: int = 0) -> tuple[bytes, int]:
        """A new line and its number; times grow by 20 ms a line."""
        self.count += 1
        self.time_ms += 20
        value = {"n": self.count, "timestamp": self.time_ms, "sessionId": SESSION, "pad": "p" * pad}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n", self.count

    def _physical(self, name: str) -> Physical:
        found = Physical(name, Path(self.path(name)).stat().st_ino)
        self.physical.append(found)
        return found

    def _append(self, descriptor: int, content: Content, data: bytes, numbers: list[int]) -> None:
        assert os.write(descriptor, data) == len(data)
        content.size += len(data)
        content.head = (content.head + data)[:1024]
        if content.kept is None:
            content.lines += numbers
        for number in numbers:
            self.of_line[number] = content

    def finish_half(self) -> None:
        if self.half is not None:
            (rest, number, _), self.half = self.half, None
            self._append(self.writer, self.current, rest, [number])

    def write(self, count: int, pad: int = 0) -> None:
        self.finish_half()
        lines = [self.line(pad) for _ in range(count)]
        self._append(self.writer, self.current, b"".join(data for data, _ in lines), [number for _, number in lines])

    def write_half(self, pad: int) -> None:
        self.finish_half()
        data, number = self.line(pad)
        self._append(self.writer, self.current, data[:30], [])
        self.half = data[30:], number, data[:30]
        self.current.half_number = number

    def start_second_writer(self) -> None:
        self.finish_half()
        if self.second is not None:
            os.close(self.second[0])
        self.second_writer = True
        self.second = self._open("server.log"), self.current

    def write_second(self, count: int) -> None:
        if self.second is None:
            return
        self.finish_half()
        lines = [self.line() for _ in range(count)]
        descriptor, content = self.second
        self._append(descriptor, content, b"".join(data for data, _ in lines), [number for _, number in lines])

    def _new_file(self, name: str) -> None:
        self.current.left_empty = self.current.size == 0
        self.writer = self._open(name)
        self.current = Content(self._physical(name))
        self.contents.append(self.current)

    def _rename(self, old: str, new: str) -> None:
        if not Path(self.path(old)).exists():
            return
        self._unname(new)
        for physical in self.physical:
            if physical.name == old:
                physical.name = new
        Path(self.path(old)).rename(self.path(new))

    def _unname(self, name: str) -> None:
        """A name goes away: whoever is not open in the reader is gone for good."""
        for physical in self.physical:
            if physical.name == name:
                physical.name = None
                if not physical.seen:
                    self._lose(physical)

    def _lose(self, physical: Physical) -> None:
        for content in self.contents:
            if content.place is physical and content.kept is None:
                self._forget(content, self.reader.received)

    def _forget(self, content: Content, received: list[tuple[int, bool]]) -> None:
        content.kept = [number for number, _ in received if self.of_line[number] is content]
        content.place = None

    def abandon_half(self) -> None:
        """The writer dies within a line."""
        if self.half is not None:
            self.current.abandoned = self.half[2]
            self.half = None

    def rotate(self, whole: bool) -> None:
        """As winston does it: X1 -> X2, X -> X1, a new X; `whole` is false when its writer died within a line."""
        if whole or self.second is not None:
            self.finish_half()
        self.abandon_half()
        os.close(self.writer)
        self._rename("server1.log", "server2.log")
        self._rename("server.log", "server1.log")
        self._new_file("server.log")

    def copy_and_truncate(self, between: int, look_between: bool) -> None:
        """As logrotate's copytruncate does it; `between` lines fall between the copy and the cut."""
        self._rename("server.log.1", "server.log.2")
        shutil.copyfile(self.path("server.log"), self.path("server.log.1"))
        lines = len(self.current.lines)
        half = self.half
        self.abandon_half()
        if look_between:
            self.look()
        if half is None:
            self.write(between)
        os.truncate(self.path("server.log"), 0)
        old = self.current
        place = old.place
        if old.kept is None:
            old.lines = old.lines[:lines]
        old.place = self._physical("server.log.1")
        old.copied = True
        self.current = Content(place)
        self.contents.append(self.current)

    def truncate(self) -> None:
        os.truncate(self.path("server.log"), 0)
        self.abandon_half()
        place = self.current.place
        assert place is not None
        if place.seen:
            self.cut.append(self.current)
        self._forget(self.current, self.reader.received)
        self.current = Content(place)
        self.contents.append(self.current)

    def delete(self) -> None:
        """The log is deleted and a new one begun."""
        self.finish_half()
        os.close(self.writer)
        self._unname("server.log")
        Path(self.path("server.log")).unlink()
        self._new_file("server.log")

    # --- the reader

    def _start(self) -> Reader:
        follower = Follower(
            [self.path("server.log")],
            start=Start.BEGINNING,
            in_use=lambda _: False,
            caps=self.caps,
            monotonic_s=self.clock,
            unix_s=lambda: self.time_ms / 1000,
        )
        follower.restore(
            [Checkpoint.from_json(json.loads(json.dumps(saved.to_json()))) for saved in self.store.values()]
        )
        return Reader(follower)

    def look(self) -> bool:
        self.clock.now_s += 0.05
        found = self.reader.follower.look()
        self.reader.notices += self.reader.follower.notices()
        self._count_losses()
        for physical in self.physical:
            if physical.name is not None:
                physical.seen = True
        for content in self.contents:
            if content.place is not None and content.place.seen:
                content.seen_size = max(content.seen_size, content.size)
        return found

    def _count_losses(self) -> None:
        """What the look just now must have reported as lost."""
        if not self.restarted:
            self.restarted = True
            for generation, saved in self.store.items():
                if self.of_generation[generation].kept is not None and not saved.ended:
                    self.lost_bytes += saved.size_bytes - saved.offset_bytes
        for content in self.cut:
            at = [place for name, place in self.reader.position.items() if self.of_generation.get(name) is content]
            at += [saved.offset_bytes for name, saved in self.store.items() if self.of_generation[name] is content]
            position = max(at, default=0)
            self.lost_bytes += max(content.seen_size, position) - position
        self.cut.clear()

    def commit(self) -> None:
        reader = self.reader
        for generation, position in reader.position.items():
            ended = generation in reader.ended
            try:
                offset = position if ended else position - len(reader.rest[generation])
                self.store[generation] = reader.follower.checkpoint(generation, offset, self.time_ms, ended=ended)
            except KeyError:
                continue
            if ended:
                reader.follower.release(generation)
        for saved in reader.follower.unsaved():
            self.store[saved.generation] = saved
        for generation in reader.follower.gone():
            self.store.pop(generation, None)
        for generation, saved in self.store.items():
            if generation not in self.of_generation:
                self.of_generation[generation] = self._of_checkpoint(saved)
        self.committed = list(reader.received)
        self.committed_halves = list(reader.halves)

    def _of_checkpoint(self, saved: Checkpoint) -> Content:
        for content in reversed(self.contents):
            if saved.head_bytes and digest(content.head[: saved.head_bytes]) == saved.head_hash:
                return content
        return next(
            (content for content in reversed(self.contents) if content.place and content.place.inode == saved.inode),
            self.current,
        )

    def crash(self) -> None:
        self.all_notices += [*self.reader.notices, *self.reader.follower.notices()]
        self.reader.follower.close()
        for physical in self.physical:
            physical.seen = False
            if physical.name is None:
                for content in self.contents:
                    if content.place is physical and content.kept is None:
                        self._forget(content, self.committed)
        for content in self.contents:
            if content.kept is not None:
                committed = {number for number, _ in self.committed}
                content.kept = [number for number in content.kept if number in committed]
            sizes = [saved.size_bytes for name, saved in self.store.items() if self.of_generation[name] is content]
            content.seen_size = max(sizes, default=0)
        self.cut.clear()
        self.of_generation = {name: found for name, found in self.of_generation.items() if name in self.store}
        self.restarted = False
        self.reader = self._start()
        self.reader.received = list(self.committed)
        self.reader.halves = list(self.committed_halves)

    def drain(self) -> None:
        self.look()
        while self.read(1 << 20):
            self.look()

    def read(self, max_bytes: int) -> bool:
        before = len(self.reader.notices)
        chunks = self.reader.read(max_bytes)
        if any(notice.kind is NoticeKind.TRUNCATED for notice in self.reader.notices[before:]):
            self._count_losses()
            self.current.seen_size = max(self.current.seen_size, self.current.size)
        for chunk in chunks:
            known = self.of_generation.get(chunk.generation)
            # (That an empty file was cut is nothing that anybody could see.)
            if chunk.data and (known is None or known.size == 0):
                number = int(chunk.data[5:].partition(b",")[0])
                self.of_generation[chunk.generation] = self._of_number(number)
        return bool(chunks)

    def _of_number(self, number: int) -> Content:
        if number in self.of_line:
            return self.of_line[number]
        return next(content for content in self.contents if content.half_number == number)

    def finish(self) -> None:
        """Write the rest of a half line, read all there is, let everything end, and close."""
        self.finish_half()
        self.drain()
        self.commit()
        for _ in range(3):
            self.clock.now_s += 11
            self.drain()
            self.commit()
        self.all_notices += [*self.reader.notices, *self.reader.follower.notices()]

    def close(self) -> None:
        self.reader.follower.close()
        os.close(self.writer)
        if self.second is not None:
            os.close(self.second[0])

    # --- what must have come out

    def check(self) -> None:
        received = [number for number, _ in self.reader.received]
        assert len(received) == len(set(received)), "nothing twice"
        for content in self.contents:
            mine = {number for number in received if self.of_line[number] is content}
            least = set(content.lines if content.kept is None else content.kept)
            # A read may have found the cut, and so opened the copy, before a look did.
            assert least <= mine <= (set(content.lines) if content.copied else least)
            if content.abandoned and content.kept is None:
                assert content.abandoned in self.reader.halves, "the rest of a file is not cut off in silence"
        for half in self.reader.halves:
            content = self._of_number(int(half[5:].partition(b",")[0]))
            assert content.kept is not None or half == content.abandoned, "no half line is ended by a timer"
        position = {content: index for index, content in enumerate(self.contents)}
        for content in self.contents:
            ordered = [number for number in received if self.of_line[number] is content]
            assert ordered == sorted(ordered), "in order within a file"
        newest = 0
        for number, late in self.reader.received:
            index = position[self.of_line[number]]
            if late:
                assert self.second_writer, "only a second writer makes lines late"
            elif not self.of_line[number].left_empty:
                assert index >= newest, "oldest file first"
                newest = index

    def check_losses(self) -> None:
        assert sum(notice.lost_bytes for notice in self.all_notices) == self.lost_bytes
