"""Following what the real winston and the real logrotate do to a log."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_bridge.sources import Follower, Start
from otel_bridge.sources.watching import Watcher
from tests.faults.witness import Witness
from tests.real.logrotate import copytruncate
from tests.real.winston import Winston
from tests.sources.following import append, entry
from tests.waiting import wait_until


class Reading:
    """A follower that a watcher wakes, read by a thread; chunks of one file are put together to lines."""

    def __init__(self, log: Path) -> None:
        self.lines: list[bytes] = []
        self.lost_bytes = 0
        self._rest: dict[str, bytes] = {}
        self._follower = Follower([str(log)], start=Start.BEGINNING)
        self._ready, self._stop = threading.Event(), threading.Event()
        watcher = Watcher(self._follower, self._ready.set)
        self._threads = [
            threading.Thread(target=watcher.run, args=(self._stop,)),
            threading.Thread(target=self._read),
        ]

    def __enter__(self) -> Reading:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._ready.set()
        for thread in self._threads:
            thread.join()
        self._follower.close()

    def _read(self) -> None:
        while not self._stop.is_set():
            self._ready.wait()
            self._ready.clear()
            while chunks := self._follower.read():
                for chunk in chunks:
                    data = self._rest.get(chunk.generation, b"") + chunk.data
                    *lines, self._rest[chunk.generation] = data.split(b"\n")
                    self.lines += lines
                    if chunk.ends_generation:
                        self._follower.release(chunk.generation)
            self.lost_bytes += sum(notice.lost_bytes for notice in self._follower.notices())


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    """The log in a folder of its own is being read."""
    (tmp_path / "logs").mkdir()
    with Reading(tmp_path / "logs" / "server.log") as found:
        yield found


@pytest.mark.real("winston")
def test_all_that_winston_writes_is_read_in_order(tmp_path: Path, reading: Reading) -> None:
    """At 2,000 lines a second in files of 64 kB every line that was ever in a file comes out, in order, once."""
    log = tmp_path / "logs" / "server.log"
    with Witness(log.parent) as witness:
        with Winston(log, max_bytes=65_536, count=8_000, entries_per_second=2_000) as winston:
            winston.wait()
        whole = witness.write_whole(tmp_path / "written").read_bytes()
    # (What winston says at its end lies beside the log.)
    written = [line for line in whole.splitlines() if b'"seq"' in line]
    wait_until(lambda: len(reading.lines) >= len(written), "all lines are read")

    numbers = [json.loads(line)["seq"] for line in reading.lines]
    assert witness.files > 20
    assert numbers == sorted(set(numbers))
    assert set(written) <= set(reading.lines)


@pytest.mark.real("logrotate")
def test_copytruncate_of_logrotate_loses_nothing_that_was_copied(tmp_path: Path, reading: Reading) -> None:
    """Lines that are written between the real logrotate's runs all come out, in order, once."""
    log = tmp_path / "logs" / "server.log"
    written = []
    for number in range(1, 61):
        append(log, entry(number, 400))
        written.append(entry(number, 400)[:-1])
        if number % 6 == 0:
            # It is far quicker than anybody would run it: three runs between two looks leave no copy.
            wait_until(lambda least=number - 6: len(reading.lines) >= least, "the lines of the last run are read")  # type: ignore[misc]
            copytruncate(log, tmp_path)
    wait_until(lambda: len(reading.lines) >= len(written), "all lines are read")

    assert reading.lines == written
    assert reading.lost_bytes == 0
