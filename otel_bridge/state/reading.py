"""The state as others see it, while a bridge works on it or when none does: nothing is held up, nothing is changed."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.errors import StateError
from otel_bridge.state.database import check, connect, failed, torn
from otel_bridge.state.lock import Holder, holder_of
from otel_bridge.state.place import DATABASE, not_regular, reason
from otel_bridge.state.values import loaded_object, text_of


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A debug session that has not ended. Times are log time, Unix ms; `session_id` and `name` are untrusted text."""

    chain: str
    session_id: str
    name: str
    language: str
    began_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class StateView:
    """What a state folder held at one moment.

    `holder` is the running bridge, if one runs. `checkpoints` are the values for `Checkpoint.from_json`, sorted by
    path. `counters` are by name and detail (see `Counts`), since the state began. `last_error` and `run` are the
    values of `LastError` and `RunStatus`, or empty.
    """

    path: Path
    holder: Holder | None
    checkpoints: tuple[Mapping[str, object], ...]
    sessions: tuple[OpenSession, ...]
    counters: Mapping[tuple[str, str], int]
    last_error: Mapping[str, object]
    run: Mapping[str, object]

    def total(self, name: str) -> int:
        """The sum of a counter over its details."""
        return sum(total for (one, _), total in self.counters.items() if one == name)

    def by_detail(self, name: str) -> dict[str, int]:
        """A counter by its details."""
        return {detail: total for (one, detail), total in sorted(self.counters.items()) if one == name}


def read_state(folder: Path, *, thoroughly: bool = False) -> StateView | None:
    """What the folder holds; None when no bridge ever kept state there. `thoroughly` looks at every page for damage.

    Raises StateError when there is something that cannot be read or is not ours.
    """
    path = folder / DATABASE
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise not_regular(path)
        holder = holder_of(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StateError(f"cannot read {path}: {reason(error)}", "run this as the user who runs the bridge") from error
    if not os.access(path, os.R_OK):
        raise StateError(f"cannot read {path}: permission denied", "run this as the user who runs the bridge")
    try:
        with closing(connect(path, "ro")) as connection:
            connection.execute("BEGIN")  # one moment for everything that follows; writers go on
            check(connection, path, thoroughly=thoroughly)
            return _read(connection, path, holder)
    except sqlite3.Error as error:
        raise failed("read", path, error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise torn(path, f"a value cannot be read: {error}") from error


def _read(connection: sqlite3.Connection, path: Path, holder: Holder | None) -> StateView:
    checkpoints = [loaded_object(value) for (value,) in connection.execute("SELECT value FROM checkpoint")]
    status = {str(name): loaded_object(value) for name, value in connection.execute("SELECT name, value FROM status")}
    sessions = [
        _session(text_of(chain), text_of(session), loaded_object(value))
        for chain, session, value in connection.execute(
            "SELECT chain, session, value FROM session WHERE NOT ended ORDER BY number"
        )
    ]
    return StateView(
        path,
        holder,
        tuple(sorted(checkpoints, key=lambda values: (str(values["base"]), int(str(values["order"]))))),
        tuple(sorted(sessions, key=lambda session: (session.began_ms, session.session_id))),
        {(name, detail): total for name, detail, total in connection.execute("SELECT * FROM counter")},
        status.get("last_error", {}),
        status.get("run", {}),
    )


def _session(chain: str, session_id: str, values: Mapping[str, object]) -> OpenSession:
    return OpenSession(
        chain,
        session_id,
        str(values["name"] or ""),
        str(values["language"] or ""),
        int(str(values["root_ms"])),
        int(str(values["last_ms"])),
    )
