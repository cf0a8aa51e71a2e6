"""The database file: made whole or not at all, and never opened when it is not ours or cannot be trusted.

Whatever is wrong with it ends in a StateError that names the file and the way out. It is never replaced by an empty
one in silence: what it held is the only knowledge of what was already delivered.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from otel_bridge.errors import StateError
from otel_bridge.state.place import open_own_file, reason

SCHEMA_VERSION = 1
APPLICATION_ID = 0x6F74_6C62
"""`otlb`, at byte 68 of the file: whose database this is (SQLite file format, 1.3.15)."""

_MAGIC = b"SQLite format 3\0"
_BUSY_S = 2.0
_MAX_WAL_PAGES = 512
"""Two megabytes, after which the journal goes into the main file. On a disk with less room than that the journal could
take all of it, and then not go into the main file, which needs room as well."""

# Keys are blobs, see values.py. A session's number is the order in which sessions were last written. A row of
# `occurrence` holds the entry counts of one commit: a row for each would make a commit ten times slower.
_SCHEMA = f"""
CREATE TABLE checkpoint (generation BLOB PRIMARY KEY, chain BLOB NOT NULL, value NOT NULL) WITHOUT ROWID;
CREATE TABLE log (chain BLOB PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    chain BLOB NOT NULL,
    session BLOB NOT NULL,
    ended INTEGER NOT NULL,
    value NOT NULL,
    UNIQUE (chain, session)
);
CREATE INDEX ended_session ON session (chain, number) WHERE ended;
CREATE INDEX open_session ON session (chain) WHERE NOT ended;
CREATE TABLE occurrence (
    number INTEGER PRIMARY KEY,
    chain BLOB NOT NULL,
    oldest_ms INTEGER NOT NULL,
    newest_ms INTEGER NOT NULL,
    value NOT NULL
);
CREATE INDEX occurrence_chain ON occurrence (chain);
CREATE TABLE counter (name TEXT, detail TEXT, total INTEGER NOT NULL, PRIMARY KEY (name, detail)) WITHOUT ROWID;
CREATE TABLE status (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_TABLES = {"checkpoint", "log", "session", "occurrence", "counter", "status"}


def open_database(path: Path) -> sqlite3.Connection:
    """The database at `path` for writing, made when missing; by one process at a time (see lock.py).

    Raises StateError when it cannot be opened, is of a newer version, torn, or not ours.
    """
    if not os.path.lexists(path):
        _create(path)
    elif _is_empty(path):
        path.unlink()
        _create(path)
    try:
        # Checked by a connection that cannot write: another would move a journal that is not ours into the file.
        with closing(connect(path, "ro")) as reader:
            check(reader, path)
        connection = connect(path, "rw")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MAX_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_MAX_WAL_PAGES * 4096}")
    except sqlite3.Error as error:
        raise failed("open", path, error) from error
    except ValueError as error:
        raise torn(path, f"a name in it cannot be read: {error}") from error
    return connection


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection without implicit transactions; `mode` is `ro` or `rw`. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    # SQLite's own error for text that is damaged has no code, and shows the text.
    connection.text_factory = bytes.decode
    return connection


def check(connection: sqlite3.Connection, path: Path, *, thoroughly: bool = True) -> None:
    """See that the database is ours, of a version we know, and whole. Raises StateError, or sqlite3.Error."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    _check_origin(path, owner, version)
    if {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")} != _TABLES:
        raise torn(path, "its tables are not those of its version")
    if thoroughly:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise torn(path, str(found).splitlines()[-1])


def _check_origin(path: Path, owner: int, version: int) -> None:
    if owner != APPLICATION_ID:
        raise StateError(
            f"{path} is no state of otel-bridge but a database of another program",
            "move it away, or give another folder with --state-dir",
        )
    if version > SCHEMA_VERSION:
        raise StateError(
            f"{path} was written by a newer otel-bridge (format {version}; this one reads {SCHEMA_VERSION})",
            f"upgrade otel-bridge, or {_BEGIN_ANEW}",
        )
    if version != SCHEMA_VERSION:
        raise torn(path, f"it has format {version}, which never was")


def _is_empty(path: Path) -> bool:
    """Look at the file's first bytes before SQLite does, which would already change a stranger's database.

    True for the empty file that a kill at its creation can leave. Raises StateError for what is not ours.
    """
    descriptor = open_own_file(path)
    try:
        header = os.pread(descriptor, 100, 0)
    except OSError as error:
        raise StateError(f"cannot read {path}: {reason(error)}", _BEGIN_ANEW) from error
    finally:
        os.close(descriptor)
    if not header:
        wal = _beside(path, "-wal")
        if wal.exists() and wal.stat().st_size:
            raise torn(path, "it is empty, but not its journal")
        return True
    if header[:16] != _MAGIC[: len(header)]:
        raise StateError(
            f"{path} is no state of otel-bridge and no database at all",
            "move it away, or give another folder with --state-dir",
        )
    if len(header) < 100:
        raise torn(path, f"only its first {len(header)} bytes are there")
    _check_origin(path, int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big"))
    return False


def _create(path: Path) -> None:
    """Make the database under another name and give it its own when it is on disk, so that it is never half there."""
    fresh = _beside(path, ".new")
    try:
        # The journals of a database that somebody moved away would be taken for those of the new one.
        for stale in (fresh, _beside(fresh, "-wal"), _beside(fresh, "-shm"), _beside(fresh, "-journal")):
            stale.unlink(missing_ok=True)
        for stale in (_beside(path, "-wal"), _beside(path, "-shm")):
            stale.unlink(missing_ok=True)
        os.close(open_own_file(fresh))
        with closing(connect(fresh, "rw")) as connection:
            connection.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {_SCHEMA} COMMIT;")
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StateError(f"cannot make {path}: {reason(error)}", _way_out(path)) from error
    except sqlite3.Error as error:
        raise failed("make", path, error) from error


def failed(verb: str, path: Path, error: sqlite3.Error) -> StateError:
    """What SQLite says as a StateError; `verb` is what was tried: open, make, read or write.

    An error that is not SQLite's own but of the module around it is a mistake of this program, and is raised again.
    """
    name = getattr(error, "sqlite_errorname", "")
    if not name:
        raise error
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return torn(path, str(error))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return StateError(f"cannot {verb} {path}: another program holds it", "close what has this database open")
    return StateError(f"cannot {verb} {path}: {error}", _way_out(path))


def is_full(error: sqlite3.Error) -> bool:
    """Whether there may have been no room; a quota or a limit on files can come as another error of writing."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR"))


def torn(path: Path, why: str) -> StateError:
    """The error for a database of ours that cannot be trusted any more."""
    return StateError(f"{path} is damaged ({why})", _BEGIN_ANEW)


def moved_away(path: Path) -> StateError:
    """The error for a database that somebody took away while it is in use."""
    return StateError(f"{path} was moved or deleted while this bridge used it", "put it back, or restart the bridge")


_BEGIN_ANEW = "move it away to begin anew: what was delivered before will be sent again"


def _way_out(path: Path) -> str:
    return f"make room on its disk and see that {path.parent} can be written, or give another folder with --state-dir"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
