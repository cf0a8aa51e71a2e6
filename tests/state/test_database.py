"""The database file: never opened when it cannot be trusted, never replaced by an empty one in silence."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge.errors import StateError
from otel_bridge.state.commit import Commit
from otel_bridge.state.database import SCHEMA_VERSION
from otel_bridge.state.lock import holder_of
from otel_bridge.state.place import DATABASE
from otel_bridge.state.reading import read_state
from otel_bridge.state.store import StateStore
from tests.state.commits import changes, checkpoint, comparable, open_session, random_commit, states

ANEW = "move it away to begin anew: what was delivered before will be sent again"


def full(folder: Path) -> Path:
    """A state with something in it, closed; its database."""
    with StateStore.open(folder) as store:
        for number in range(40):
            session = open_session() | {"padding": str(number) * 2000}
            store.commit(Commit({"c#1": checkpoint("c")}, {"c": changes({str(number): session}, [("ab", 5, 1)])}))
    return folder / DATABASE


def newer(path: Path) -> None:
    """As a later version leaves it."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def newer_in_the_journal(path: Path) -> None:
    """As a later version leaves it when it is killed: the main file still says the old one."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for file in list(path.parent.glob(f"{DATABASE}*")):
        shutil.copy(file, f"{file}.copy")
    connection.close()
    for copy in list(path.parent.glob("*.copy")):
        copy.replace(copy.with_suffix(""))
    path.with_name(f"{DATABASE}-shm").unlink()


def versionless(path: Path) -> None:
    """As nothing ever wrote it."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()


def tableless(path: Path) -> None:
    """A table is gone."""
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE session")
    connection.close()


def strange(path: Path) -> None:
    """The database of another program."""
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmark (url TEXT)")
    connection.close()


def no_database(path: Path) -> None:
    """A text file."""
    path.write_text("to do: buy milk\n" * 100)


def half(path: Path) -> None:
    """The second half was never written."""
    os.truncate(path, path.stat().st_size // 2)


def stub(path: Path) -> None:
    """Not even the header is whole."""
    os.truncate(path, 50)


def overwritten(path: Path) -> None:
    """A page in the middle holds something else."""
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(4096))


def value_gone_wrong(path: Path) -> None:
    """A row is no JSON."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET value = '{'")
    connection.close()


def emptied_beside_its_journal(path: Path) -> None:
    """The main file is empty, but a journal with commits lies beside it."""
    os.truncate(path, 0)
    path.with_name(f"{DATABASE}-wal").write_bytes(b"something")


def in_its_place(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Something else under the name of the database."""

    def spoil(path: Path) -> None:
        path.rename(path.with_name("elsewhere"))
        make(path)

    return spoil


SPOILT = {
    newer: f"was written by a newer otel-bridge .*{SCHEMA_VERSION + 1}.*; upgrade otel-bridge, or {ANEW}",
    newer_in_the_journal: f"was written by a newer otel-bridge .*; upgrade otel-bridge, or {ANEW}",
    versionless: f"is damaged .*; {ANEW}",
    tableless: f"is damaged .*; {ANEW}",
    strange: "is no state of otel-bridge but a database of another program; move it away, or give another folder",
    no_database: "is no state of otel-bridge and no database at all; move it away, or give another folder",
    half: f"is damaged .*; {ANEW}",
    stub: f"is damaged .*; {ANEW}",
    overwritten: f"is damaged .*; {ANEW}",
    value_gone_wrong: f"is damaged .*; {ANEW}",
    emptied_beside_its_journal: f"is damaged .*; {ANEW}",
    in_its_place(Path.mkdir): "is no regular file; move it away",
    in_its_place(os.mkfifo): "is no regular file; move it away",
    in_its_place(lambda path: path.symlink_to("elsewhere")): "is no regular file; move it away",
}


@pytest.mark.parametrize(
    ("spoil", "message"), SPOILT.items(), ids=[*(spoil.__name__ for spoil in [*SPOILT][:-3]), "folder", "FIFO", "link"]
)
def test_state_that_cannot_be_trusted_is_named_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    """The error names the file and the way out; the file stays as it is, and the folder is free again."""
    path = full(tmp_path)
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""

    with pytest.raises(StateError, match=f"^{path} {message}"), StateStore.open(tmp_path) as store:
        store.load()

    assert (path.read_bytes() if path.is_file() else b"") == before
    assert holder_of(tmp_path) is None


@pytest.mark.parametrize("spoil", [newer, strange, no_database, stub, tableless, in_its_place(os.mkfifo)])
def test_status_says_the_same_of_a_state_that_cannot_be_trusted(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """Reading only looks: it gives an error that names the file, too, and leaves everything as it is."""
    path = full(tmp_path)
    spoil(path)
    before = {file.name for file in tmp_path.iterdir()}

    with pytest.raises(StateError, match=f"^{path} "):
        read_state(tmp_path)

    assert {file.name for file in tmp_path.iterdir()} >= before


def test_empty_file_is_a_new_state(tmp_path: Path) -> None:
    """What a kill at the file's creation can leave is begun anew."""
    (tmp_path / DATABASE).touch()

    with StateStore.open(tmp_path) as store:
        assert store.load().checkpoints == {}


def test_kill_while_it_is_made_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    """A half-made database under its working name is made anew."""
    (tmp_path / f"{DATABASE}.new").write_bytes(b"half")
    (tmp_path / f"{DATABASE}.new-wal").write_bytes(b"half")

    with StateStore.open(tmp_path) as store:
        assert store.load().checkpoints == {}


def test_moving_the_database_away_begins_anew(tmp_path: Path) -> None:
    """The way out that the messages name works also when the journals of the old one were left behind."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
        for file in list(tmp_path.glob(f"{DATABASE}*")):
            shutil.copy(file, tmp_path / f"left-{file.name}")
    (tmp_path / DATABASE).unlink()
    (tmp_path / f"left-{DATABASE}-wal").rename(tmp_path / f"{DATABASE}-wal")
    (tmp_path / f"left-{DATABASE}-shm").rename(tmp_path / f"{DATABASE}-shm")

    with StateStore.open(tmp_path) as store:
        assert store.load().checkpoints == {}


def test_mode_of_a_file_that_was_copied_here_is_put_right(tmp_path: Path) -> None:
    """A database that others could read is made 0600, and so are its journals."""
    full(tmp_path).chmod(0o644)

    with StateStore.open(tmp_path) as store:
        store.commit(Commit())

        assert {file.stat().st_mode & 0o777 for file in tmp_path.glob(f"{DATABASE}*")} == {0o600}


def test_path_with_any_characters_is_found(tmp_path: Path) -> None:
    """A folder may be called anything: what a URI would read as its own, and what is no UTF-8."""
    folder = tmp_path / "a?mode=ro#b%20c \udce9"

    with StateStore.open(folder) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
    with StateStore.open(folder) as store:
        assert list(store.load().checkpoints) == ["c#1"]
    view = read_state(folder)
    assert view is not None
    assert len(view.checkpoints) == 1


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 12),
    crash=st.one_of(st.tuples(st.just(0), st.floats(0, 1)), st.tuples(st.sampled_from([4, 30]), st.just(1.0))),
)
@settings(max_examples=80, deadline=None)
def test_copy_with_a_torn_journal_loads_to_a_prefix_of_the_commits(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, crash: tuple[int, float]
) -> None:
    """Whatever part of the journal a crash of the machine leaves, the state is that after some of the commits.

    `crash` is after how many pages the journal goes into the main file (0: never), and how much of it is left: what
    went into the main file was forced to the disk before, so that no crash can take it.
    """
    pages, cut = crash
    rng = random.Random(seed)
    commits = [random_commit(rng, number) for number in range(count)]
    folder = tmp_path_factory.mktemp("state")
    crashed = folder / "crashed"
    with StateStore.open(folder) as store:
        store._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}").fetchone()
        for commit in commits:
            store.commit(commit)
        crashed.mkdir(0o700)
        shutil.copy(store.path, crashed)
        journal = store.path.with_name(f"{DATABASE}-wal").read_bytes()
    (crashed / f"{DATABASE}-wal").write_bytes(journal[: int(len(journal) * cut)])

    with StateStore.open(crashed) as store:
        found = comparable(store.load())

    assert found in states(commits)
    if cut == 1:
        assert found == states(commits)[-1]


def test_damaged_text_is_named_as_damage_and_not_shown(tmp_path: Path) -> None:
    """SQLite's own error for text that is no text has no code, and quotes the text."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit(checkpoints={"log#1": {"chain": "log", "path": "/secret-place"}}))
    path = tmp_path / DATABASE
    path.write_bytes(path.read_bytes().replace(b"/secret-place", b"/secret\xff\xfeplace"))

    with pytest.raises(StateError, match="is damaged") as raised, StateStore.open(tmp_path) as store:
        store.load()
    assert "secret" not in str(raised.value).replace(str(tmp_path), "")
