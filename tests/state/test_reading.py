"""What others see of the state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from otel_bridge.errors import StateError
from otel_bridge.state.commit import Commit, Counts
from otel_bridge.state.lock import Holder
from otel_bridge.state.place import DATABASE
from otel_bridge.state.reading import OpenSession, read_state
from otel_bridge.state.store import StateStore
from tests.state.commits import changes, checkpoint, ended_session, open_session
from tests.state.processes import other_bridge


def test_folder_without_state_gives_nothing_and_stays_as_it_is(tmp_path: Path) -> None:
    """Looking makes no folder and no file."""
    assert read_state(tmp_path) is None
    assert read_state(tmp_path / "missing") is None
    assert list(tmp_path.iterdir()) == []


def test_state_is_seen_while_a_bridge_works_on_it(tmp_path: Path) -> None:
    """Each look sees the last commit and names the process; the bridge goes on as if nobody had looked."""
    with StateStore.open(tmp_path) as store:
        for number in range(1, 30):
            store.commit(Commit({"c#1": checkpoint("c", offset_bytes=number)}, counts=Counts(1)))

            view = read_state(tmp_path)

            assert view is not None
            assert isinstance(view.holder, Holder)
            assert view.checkpoints[0]["offset_bytes"] == number
            assert view.total("delivered_spans") == number


def test_state_of_a_killed_bridge_is_seen_and_left_to_the_next_one(tmp_path: Path) -> None:
    """What only the journal of a killed bridge holds is read, but not moved into the main file."""
    crashed = tmp_path / "crashed"
    with StateStore.open(tmp_path) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
        crashed.mkdir()
        for file in tmp_path.glob(f"{DATABASE}*"):
            shutil.copy(file, crashed)
    before = (crashed / DATABASE).read_bytes()

    view = read_state(crashed)

    assert view is not None
    assert (view.holder, len(view.checkpoints)) == (None, 1)
    assert (crashed / DATABASE).read_bytes() == before


def test_process_that_has_the_folder_is_seen(tmp_path: Path) -> None:
    """The holder is the other process while it lives, and nobody after it was killed."""
    with other_bridge(tmp_path) as process:
        view = read_state(tmp_path)
        assert view is not None
        assert view.holder == Holder(process.pid)

    view = read_state(tmp_path)

    assert view is not None
    assert view.holder is None


def test_open_sessions_are_seen_oldest_first_and_ended_ones_are_not(tmp_path: Path) -> None:
    """A session without name or language has empty ones."""
    nameless = open_session(root_ms=5) | {"name": None, "language": None}
    with StateStore.open(tmp_path) as store:
        store.commit(
            Commit(logs={"c": changes({"b": open_session("late", 9, 10), "a": nameless, "over": ended_session()})})
        )

    view = read_state(tmp_path)

    assert view is not None
    assert view.sessions == (OpenSession("c", "a", "", "", 5, 5), OpenSession("c", "b", "late", "python", 9, 10))


def test_looking_does_not_touch_the_database(tmp_path: Path) -> None:
    """The main file has the same bytes and the same time after a look, with a journal beside it or without."""
    with StateStore.open(tmp_path) as store:
        store.commit(Commit({"c#1": checkpoint("c")}))
        before = (store.path.read_bytes(), store.path.stat().st_mtime_ns)
        read_state(tmp_path)
        assert (store.path.read_bytes(), store.path.stat().st_mtime_ns) == before
    before = (store.path.read_bytes(), store.path.stat().st_mtime_ns)
    read_state(tmp_path)
    assert (store.path.read_bytes(), store.path.stat().st_mtime_ns) == before


def test_state_of_another_user_says_who_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without permission the error names the file and what to do."""
    StateStore.open(tmp_path).close()
    monkeypatch.setattr("os.access", lambda path, mode: False)

    with pytest.raises(StateError, match=f"cannot read {tmp_path / DATABASE}: permission denied; run this as the user"):
        read_state(tmp_path)
