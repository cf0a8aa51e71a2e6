"""The state as the bridge uses it: loaded once, committed with each delivered batch."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Self

from otel_bridge.sessions.ids import WINDOW_MS
from otel_bridge.sessions.log_mapping import MAX_ENDED
from otel_bridge.sessions.saved import Json, MappingChanges
from otel_bridge.state.commit import Commit, Counts, LogTimes
from otel_bridge.state.database import failed, is_full, moved_away, open_database, torn
from otel_bridge.state.lock import FolderLock
from otel_bridge.state.place import DATABASE, prepare_state_folder
from otel_bridge.state.values import Stored, key, loaded, loaded_object, stored, text_of

Write = tuple[str, list[tuple[Stored | int, ...]]]
"""A statement and the rows that it is run with."""


@dataclass(frozen=True, slots=True)
class SavedLog:
    """One log's mapping: the arguments of `otel_bridge.sessions.saved.restore`. Sessions in the order they ended."""

    log: Json
    sessions: Mapping[str, Json]
    occurrences: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class SavedState:
    """All that was committed: checkpoints by generation, logs by chain."""

    checkpoints: Mapping[str, Json]
    logs: Mapping[str, SavedLog]


class StateStore:
    """An open state folder; `open` makes one. Used by one thread at a time."""

    def __init__(self, path: Path, lock: FolderLock, connection: sqlite3.Connection, max_ended: int) -> None:
        self.path = path
        self._lock = lock
        self._connection = connection
        self._max_ended = max_ended
        found = path.lstat()
        self._place = (found.st_dev, found.st_ino)
        self._ended: Counter[bytes] = Counter()
        """How many ended sessions each chain has at most: counted up here, so that a commit need not ask."""

    @classmethod
    def open(cls, folder: Path, *, max_ended: int = MAX_ENDED) -> StateStore:
        """Take the folder for this process, making what is missing.

        Of ended sessions the last `max_ended` of each chain are kept. Raises StateError when the folder cannot be
        used, when another bridge has it (the message names its process), or when what lies there is not fit to go on
        from: of a newer version, torn, not ours.
        """
        prepare_state_folder(folder)
        lock = FolderLock(folder)
        try:
            path = folder / DATABASE
            return cls(path, lock, open_database(path), max_ended)
        except BaseException:
            lock.release()
            raise

    def close(self) -> None:
        """Close the database and let the folder go. Closing twice is allowed."""
        self._connection.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def load(self) -> SavedState:
        """What was committed last. Raises StateError when it cannot be read.

        A chain of which no file and nothing open is left has nothing to go on from: it is dropped here.
        """
        try:
            for chain, ended in self._connection.execute(
                "SELECT chain, count(*) FROM session WHERE ended GROUP BY chain"
            ):
                self._ended[chain] = ended
            for chain in [chain for chain, ended in self._ended.items() if ended > self._max_ended]:
                self._cap_ended(chain)
            checkpoints = {
                text_of(generation): loaded_object(value)
                for generation, value in self._connection.execute("SELECT generation, value FROM checkpoint")
            }
            followed = {values["chain"] for values in checkpoints.values()}
            logs = dict(self._load_logs())
            over = {chain for chain, log in logs.items() if chain not in followed and not _is_open(log)}
            if over:
                self.commit(Commit(forgotten_chains=frozenset(over)))
        except sqlite3.Error as error:
            raise failed("read", self.path, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise torn(self.path, f"a value cannot be read: {error}") from error
        return SavedState(checkpoints, {chain: log for chain, log in logs.items() if chain not in over})

    def _load_logs(self) -> Iterator[tuple[str, SavedLog]]:
        sessions: dict[bytes, dict[str, Json]] = {}
        rows = self._connection.execute("SELECT chain, session, value FROM session ORDER BY number")
        for chain, session, value in rows:
            sessions.setdefault(chain, {})[text_of(session)] = loaded_object(value)
        occurrences: dict[bytes, dict[str, tuple[str, int, int]]] = {}
        for chain, value in self._connection.execute("SELECT chain, value FROM occurrence ORDER BY number"):
            counted = occurrences.setdefault(chain, {})
            counted.update((digest, (digest, time_ms, count)) for digest, time_ms, count in _list(loaded(value)))
        for chain, value in self._connection.execute("SELECT chain, value FROM log"):
            saved = SavedLog(loaded_object(value), sessions.get(chain, {}), tuple(occurrences.get(chain, {}).values()))
            yield text_of(chain), saved

    def commit(self, commit: Commit) -> None:
        """Write it all, or nothing: one transaction.

        Raises StateError when it cannot be written (a full disk, a folder that is gone). The store stays as
        it was and can be used: keep the commit, and try again with `commit.merged_with(later)`.
        """
        writes = [*self._writes(commit)]  # everything that can go wrong with values does so before the transaction
        self._check_place()
        try:
            try:
                self._write(writes, commit)
            except sqlite3.OperationalError as error:
                if not is_full(error):
                    raise
                # The journal grows to megabytes before it goes into the main file, most of it written over and over.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._write(writes, commit)
        except sqlite3.Error as error:
            raise failed("write", self.path, error) from error

    def _write(self, writes: Sequence[Write], commit: Commit) -> None:
        with self._transaction():
            for statement, rows in writes:
                self._connection.executemany(statement, rows)
            for chain, changes in commit.logs.items():
                self._count_ended(key(chain), changes)

    def _check_place(self) -> None:
        """Commits to a file that lost its name would look well, and be gone with this process."""
        try:
            found = self.path.lstat()
        except OSError as error:
            raise moved_away(self.path) from error
        if (found.st_dev, found.st_ino) != self._place:
            raise moved_away(self.path)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _writes(self, commit: Commit) -> Iterator[Write]:
        forgotten: list[tuple[Stored | int, ...]] = [(key(chain),) for chain in commit.forgotten_chains]
        if forgotten:
            for table in ("checkpoint", "log", "session", "occurrence"):
                yield f"DELETE FROM {table} WHERE chain = ?", forgotten
        saved = [(generation, values) for generation, values in commit.checkpoints.items() if values is not None]
        if len(saved) < len(commit.checkpoints):
            yield (
                "DELETE FROM checkpoint WHERE generation = ?",
                [(key(generation),) for generation, values in commit.checkpoints.items() if values is None],
            )
        if saved:
            yield (
                "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)",
                [(key(generation), key(str(values["chain"])), stored(values)) for generation, values in saved],
            )
        for chain, changes in commit.logs.items():
            yield from _log_writes(key(chain), changes)
        counters = [*_counters(commit.counts)]
        if counters:
            yield (
                "INSERT INTO counter VALUES (?, ?, ?) "
                "ON CONFLICT (name, detail) DO UPDATE SET total = total + excluded.total",
                counters,
            )
        for name, value in (("last_error", commit.last_error), ("run", commit.run)):
            if value is not None:
                yield "INSERT OR REPLACE INTO status VALUES (?, ?)", [(name, stored(asdict(value)))]

    def _count_ended(self, chain: bytes, changes: MappingChanges) -> None:
        self._ended[chain] += sum(1 for value in changes.sessions.values() if _is_ended(value))
        # A hundredth above the cap, so that rows are sought and deleted once in as many sessions, not with every one.
        if self._ended[chain] > self._max_ended + self._max_ended // 100:
            self._cap_ended(chain)

    def _cap_ended(self, chain: bytes) -> None:
        self._connection.execute(
            "DELETE FROM session WHERE ended AND chain = ?1 AND number <= (SELECT number FROM session "
            "WHERE ended AND chain = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
            (chain, self._max_ended),
        )
        self._ended[chain] = self._max_ended


def _log_writes(chain: bytes, changes: MappingChanges) -> Iterator[Write]:
    yield "INSERT OR REPLACE INTO log VALUES (?, ?)", [(chain, stored(changes.log))]
    removed: list[tuple[Stored | int, ...]] = [
        (chain, key(session)) for session, value in changes.sessions.items() if value is None
    ]
    if removed:
        yield "DELETE FROM session WHERE chain = ? AND session = ?", removed
    if len(removed) < len(changes.sessions):
        yield (
            # A replaced row gets a new number: the last one.
            "INSERT OR REPLACE INTO session (chain, session, ended, value) VALUES (?, ?, ?, ?)",
            [
                (chain, key(session), int(_is_ended(value)), stored(value))
                for session, value in changes.sessions.items()
                if value is not None
            ],
        )
    if changes.occurrences:
        times = LogTimes.of(changes.occurrences)
        yield (
            "DELETE FROM occurrence WHERE chain = ? AND (newest_ms < ? OR oldest_ms > ?)",
            [(chain, times.oldest_ms - WINDOW_MS, times.newest_ms + WINDOW_MS)],
        )
        yield (
            "INSERT INTO occurrence (chain, oldest_ms, newest_ms, value) VALUES (?, ?, ?, ?)",
            [(chain, *times, stored(changes.occurrences))],
        )


def _counters(counts: Counts) -> Iterator[tuple[Stored | int, ...]]:
    for field in fields(counts):
        value = getattr(counts, field.name)
        for detail, number in value.items() if isinstance(value, Mapping) else [("", value)]:
            if number or detail:  # a loss of unknown size is one all the same
                yield field.name, detail, number


def _is_ended(value: Json | None) -> bool:
    return value is not None and "ended" in value


def _is_open(log: SavedLog) -> bool:
    """Whether spans of this log are still to come: open sessions, calls of no session, creates, DAP traces."""
    sessions = any(not _is_ended(session) or "dap" in session for session in log.sessions.values())
    return sessions or any(log.log.get(name) for name in ("loose", "creates"))


def _list(value: object) -> list[tuple[str, int, int]]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value
