"""A log that is written and rotated as the server's winston does it, with a copy of every byte that was ever in it."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from otel_bridge.entries.kinds import STRUCTURED_LINE
from otel_bridge.entries.times import time_ms
from tests.recordings import Recording

KEPT_FILES = 3


def session_lines(name: str, now_ms: int) -> Iterator[bytes]:
    """The lines of a recorded session, as if it ran now under an id of its own, and a bit shorter."""
    recording = Recording(name)
    replaced: dict[str, str] = {}
    shift_ms: int | None = None
    for line in recording.lines:
        entry = json.loads(line)
        when = time_ms(entry["timestamp"])
        assert isinstance(when, int)
        shift_ms = now_ms - when if shift_ms is None else shift_ms
        if str(entry["message"]).startswith("session:created"):
            replaced[str(entry["sessionId"])] = str(uuid.uuid4())
        written = shifted(line, shift_ms)
        for old, new in replaced.items():
            written = written.replace(old.encode(), new.encode())
        yield written


def shifted(line: bytes, by_ms: int) -> bytes:
    """A line as it would have been written at another time."""
    entry = json.loads(line)
    when = time_ms(entry["timestamp"])
    assert isinstance(when, int)
    moved = when + by_ms
    text = datetime.fromtimestamp(moved / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry["timestamp"] = moved if isinstance(entry["timestamp"], int) else text
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def write_sessions(log: Path, count: int, began_ms: int | None = None) -> None:
    """Appends the structured lines of `count` sessions (39 spans each) that follow one another."""
    now_ms = int(time.time() * 1000) if began_ms is None else began_ms
    lasts_ms = duration_ms("happy")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        for number in range(count):
            lines = session_lines("happy", now_ms + number * (lasts_ms + 1))
            file.writelines(line for line in lines if STRUCTURED_LINE.search(line))


def duration_ms(name: str) -> int:
    """How long a recorded session lasts."""
    times = [time_ms(json.loads(line)["timestamp"]) for line in Recording(name).lines]
    known = [one for one in times if isinstance(one, int)]
    return max(known) - known[0]


class RotatingWriter:
    """Writes sessions into `folder/server.log`, rotating at `max_bytes`; `folder/../whole.log` keeps every byte.

    Sessions follow one another also in log time, which therefore runs ahead of the clock.
    """

    def __init__(self, folder: Path, *, max_bytes: int, lines_per_second: float, seed: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "server.log"
        self.whole = folder.parent / "whole.log"
        self.lines = 0
        self.rotations = 0
        self._max_bytes = max_bytes
        self._pause_s = 1 / lines_per_second
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RotatingWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Ends the session that is being written, and stops."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began_s, with_whole = time.monotonic(), self.whole.open("ab", buffering=0)
        with with_whole as whole:
            log_ms, lasts_ms = int(time.time() * 1000), duration_ms("happy")
            file: IO[bytes] = self.log.open("ab", buffering=0)
            while not self._stop.is_set():
                for line in session_lines("happy", log_ms):
                    behind_s = began_s + self.lines * self._pause_s - time.monotonic()
                    if behind_s > 0:
                        self._stop.wait(min(behind_s, 0.05))
                    whole.write(line)
                    middle = self._random.randrange(len(line))
                    file.write(line[:middle])  # a reader sees half a line now and then
                    file.write(line[middle:])
                    self.lines += 1
                    if file.tell() > self._max_bytes:
                        file = self._rotate(file)
                        self.rotations += 1
                log_ms += lasts_ms + 1
            file.close()

    def _rotate(self, file: IO[bytes]) -> IO[bytes]:
        """`server1.log` becomes `server2.log`, `server.log` becomes `server1.log`; three files are kept."""
        file.close()
        first, second = (self.log.with_name(f"server{number}.log") for number in (1, 2))
        if first.exists():
            first.replace(second)
        self.log.replace(first)
        return self.log.open("ab", buffering=0)
