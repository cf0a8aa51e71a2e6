"""What is committed is what is loaded; what cannot be committed can be tried again."""

from __future__ import annotations

import random
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_bridge.errors import StateError
from otel_bridge.sessions.ids import WINDOW_MS
from otel_bridge.sessions.saved import MappingChanges
from otel_bridge.state.commit import Commit, Counts, LastError, RunStatus
from otel_bridge.state.place import DATABASE
from otel_bridge.state.reading import read_state
from otel_bridge.state.store import SavedState, StateStore
from tests.state.commits import (
    changes,
    checkpoint,
    comparable,
    ended_session,
    log_values,
    open_session,
    random_commit,
    states,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder that is not there yet."""
    return tmp_path / "state"


def load(folder: Path) -> SavedState:
    """What the next bridge would find."""
    with StateStore.open(folder) as store:
        return store.load()


def commit(folder: Path, *commits: Commit) -> None:
    """What a bridge committed before it ended."""
    with StateStore.open(folder) as store:
        for one in commits:
            store.commit(one)


def test_new_folder_is_empty_and_private(folder: Path) -> None:
    """A state that never was is empty, its folder is 0700, and its files are 0600."""
    with StateStore.open(folder) as store:
        assert store.load() == SavedState({}, {})
        store.commit(Commit(counts=Counts(1)))

        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_commit_is_what_the_next_start_loads(folder: Path) -> None:
    """Checkpoints, the log's own values, sessions and entry counts survive a restart."""
    point, session = checkpoint("c", offset_bytes=10), open_session()
    commit(folder, Commit({"c#1024": point}, {"c": changes({"s": session}, [("ab", 5, 1)])}))

    state = load(folder)

    assert state.checkpoints == {"c#1024": point}
    assert state.logs["c"].log == log_values()
    assert state.logs["c"].sessions == {"s": session}
    assert state.logs["c"].occurrences == (("ab", 5, 1),)


def test_none_forgets_a_checkpoint_and_a_session(folder: Path) -> None:
    """A None in a commit takes out what an earlier commit put in, and nothing else."""
    commit(
        folder,
        Commit(
            {"c#1": checkpoint("c"), "c#2": checkpoint("c", 2)},
            {"c": changes({"s": open_session(), "t": open_session("t")})},
        ),
        Commit({"c#1": None}, {"c": changes({"s": None})}),
    )

    state = load(folder)

    assert list(state.checkpoints) == ["c#2"]
    assert list(state.logs["c"].sessions) == ["t"]


def test_forgotten_chain_leaves_nothing(folder: Path) -> None:
    """All rows of a forgotten chain go, and what the same commit says of it is written after that."""
    before = Commit({"c#1": checkpoint("c")}, {"c": changes({"s": open_session()}, [("ab", 5, 1)])})
    commit(
        folder, before, Commit({"c#2": checkpoint("c", 2)}, {"c": changes({"new": open_session()})}, frozenset({"c"}))
    )

    state = load(folder)

    assert list(state.checkpoints) == ["c#2"]
    assert list(state.logs["c"].sessions) == ["new"]
    assert state.logs["c"].occurrences == ()


@pytest.mark.parametrize(
    ("left", "is_kept"),
    [
        (changes({"s": ended_session()}), False),
        (changes({"s": open_session()}), True),
        (changes(loose={"null": {}}), True),
        (changes({"s": {**ended_session(), "dap": {}}}), True),
    ],
    ids=["ended", "open session", "open call", "DAP trace to be read"],
)
def test_chain_without_files_is_dropped_at_the_start_if_nothing_is_open(
    folder: Path, left: MappingChanges, is_kept: bool
) -> None:
    """A log whose files are all gone is loaded only for what still has to be sent of it, else its rows are removed."""
    commit(folder, Commit(logs={"c": left}))

    assert ("c" in load(folder).logs) == is_kept
    with StateStore.open(folder) as store:
        (rows,) = store._connection.execute("SELECT count(*) FROM log").fetchone()
    assert rows == is_kept


def test_sessions_come_back_in_the_order_in_which_they_ended(folder: Path) -> None:
    """Of ended sessions the mapping drops the oldest first, so their order is part of the state."""
    commit(
        folder,
        *(
            Commit({"c#1": checkpoint("c")}, {"c": changes({session: ended_session()})})
            for session in ("b", "c", "a", "b")
        ),
    )

    assert list(load(folder).logs["c"].sessions) == ["c", "a", "b"]


@pytest.mark.parametrize("max_ended", [1, 7, 250])
def test_ended_sessions_are_capped_and_open_ones_are_not(folder: Path, max_ended: int) -> None:
    """Of ended sessions the last ones are kept, at most so many of each chain; an open session always is."""
    with StateStore.open(folder, max_ended=max_ended) as store:
        store.commit(Commit({"c#1": checkpoint("c")}, {"c": changes({"open": open_session()})}))
        store.commit(Commit({"d#1": checkpoint("d")}, {"d": changes({"other": ended_session()})}))
        for number in range(600):
            store.commit(Commit(logs={"c": changes({str(number): ended_session()})}))

    with StateStore.open(folder, max_ended=max_ended) as store:
        state = store.load()

    assert list(state.logs["c"].sessions) == ["open", *map(str, range(600 - max_ended, 600))]
    assert list(state.logs["d"].sessions) == ["other"]


def test_ended_sessions_do_not_pile_up_between_two_starts(folder: Path) -> None:
    """While one bridge runs, a chain never has more than a hundredth above the cap."""
    with StateStore.open(folder, max_ended=200) as store:
        for number in range(1000):
            store.commit(Commit(logs={"c": changes({str(number): ended_session()})}))
            (rows,) = store._connection.execute("SELECT count(*) FROM session").fetchone()

            assert rows <= 202


def test_entry_counts_far_from_the_last_ones_are_dropped(folder: Path) -> None:
    """Counts older than the mapping's window by log time go, also when the log's clock jumps back."""
    now_ms = 1_700_000_000_000
    times_ms = [now_ms, now_ms + WINDOW_MS, now_ms + 2 * WINDOW_MS + 1, now_ms - 3_600_000]
    point = {"c#1": checkpoint("c")}
    kept = []
    with StateStore.open(folder) as store:
        for time_ms in times_ms:
            store.commit(Commit(point, {"c": changes(occurrences=[(f"{time_ms:032x}", time_ms, 0)])}))
            kept.append([time for _, time, _ in store.load().logs["c"].occurrences])

    assert kept == [times_ms[:1], times_ms[:2], times_ms[2:3], times_ms[3:]]


def test_later_count_of_the_same_entry_wins(folder: Path) -> None:
    """An entry that was counted again has its last count."""
    first, second = changes(occurrences=[("ab", 5, 0), ("cd", 5, 0)]), changes(occurrences=[("ab", 5, 1)])
    commit(folder, Commit({"c#1": checkpoint("c")}, {"c": first}), Commit(logs={"c": second}))

    assert set(load(folder).logs["c"].occurrences) == {("ab", 5, 1), ("cd", 5, 0)}


def test_values_that_only_python_carries_come_back(folder: Path) -> None:
    """Integers beyond 64 bits and file names that are no UTF-8 are kept to the letter."""
    path, name = "/logs/caf\udce9.log", "caf\udce9.log-1"
    session = open_session() | {"held": [10**30, -(2**64), "\u2028\0\x1b", 1.5, None]}
    commit(folder, Commit({f"{name}#1": checkpoint(name, 1, path=path)}, {name: changes({"\x00\u2028": session})}))

    state = load(folder)

    assert state.checkpoints[f"{name}#1"]["path"] == path
    assert state.logs[name].sessions == {"\x00\u2028": session}


def test_counters_add_up_and_the_last_word_stays(folder: Path) -> None:
    """Counts grow over commits and starts; of error and status the last is kept."""
    counts = Counts(3, 1, {"gap": 10}, {"not JSON": 2})
    commit(folder, Commit(counts=counts, last_error=LastError(1, "first")), Commit(run=RunStatus(5, "http://a")))
    commit(
        folder,
        Commit(counts=counts, last_error=LastError(2, "second")),
        Commit(counts=Counts(lost_bytes={"held_cap": 1})),
        Commit(counts=Counts(lost_bytes={"overtaken": 0}).plus(Counts(lost_bytes={"held_cap": 0}))),
    )

    view = read_state(folder)

    assert view is not None
    assert view.total("delivered_spans") == 6
    assert view.total("refused_spans") == 2
    assert view.by_detail("lost_bytes") == {"gap": 20, "held_cap": 1, "overtaken": 0}
    assert view.total("malformed_lines") == 4
    assert view.last_error == {"time_ms": 2, "message": "second"}
    assert view.run["endpoint"] == "http://a"


def test_failed_commit_changes_nothing_and_can_be_tried_again(folder: Path) -> None:
    """With no room the commit raises an error that names file, reason and way out; later the merge goes through."""
    first = Commit({"c#1": checkpoint("c")}, {"c": changes({"s": open_session()})}, counts=Counts(1))
    large = Commit(logs={"c": changes({"s": {**open_session(), "padding": "x" * 1_000_000}})}, counts=Counts(2))
    last = Commit({"c#1": checkpoint("c", offset_bytes=9)}, {"c": changes({"t": open_session()})}, counts=Counts(4))
    with StateStore.open(folder) as store:
        store.commit(first)
        (unlimited,) = store._connection.execute("PRAGMA max_page_count").fetchone()
        store._connection.execute("PRAGMA max_page_count = 30").fetchone()

        with pytest.raises(StateError, match=rf"cannot write {folder / DATABASE}: .*full; make room") as caught:
            store.commit(large)
        assert caught.value.exit_code == 1
        assert list(store.load().logs["c"].sessions) == ["s"]

        store._connection.execute(f"PRAGMA max_page_count = {unlimited}").fetchone()
        store.commit(large.merged_with(last))

        assert comparable(store.load()) == states([first, large, last])[-1]
    view = read_state(folder)
    assert view is not None
    assert view.total("delivered_spans") == 7


LITTLE_ROOM = """
import resource, sys
from pathlib import Path
from otel_bridge.state.commit import Commit
from otel_bridge.state.store import StateStore
from tests.state.commits import changes, checkpoint, open_session

with StateStore.open(Path(sys.argv[1])) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    for number in range(100):
        session = open_session(str(number)) | {"padding": "x" * 20_000}
        store.commit(Commit({"c#1": checkpoint("c")}, {"c": changes({"s": session})}))
"""


def test_journal_makes_room_for_itself(folder: Path) -> None:
    """Where the journal cannot grow it goes into the main file: no commit fails as long as what is kept has room."""
    subprocess.run([sys.executable, "-c", LITTLE_ROOM, str(folder)], check=True)

    assert load(folder).logs["c"].sessions["s"]["name"] == "99"


def test_commit_that_fails_half_way_leaves_no_half_behind(folder: Path) -> None:
    """What was written before the statement that failed is taken back, and the next commit begins anew."""
    with StateStore.open(folder) as store:
        store._connection.execute(
            "CREATE TEMP TRIGGER refusal BEFORE INSERT ON counter BEGIN SELECT RAISE(ABORT, 'no counting'); END"
        )
        with pytest.raises(StateError, match="no counting"):
            store.commit(Commit({"c#1": checkpoint("c")}, counts=Counts(1)))
        assert store.load().checkpoints == {}

        store._connection.execute("DROP TRIGGER refusal")
        store.commit(Commit({"c#2": checkpoint("c")}, counts=Counts(1)))
        assert list(store.load().checkpoints) == ["c#2"]


def test_use_after_closing_is_no_fault_of_the_file(folder: Path) -> None:
    """A mistake of the program is not told to people as a damaged or full disk."""
    store = StateStore.open(folder)
    store.close()
    store.close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.commit(Commit())


def test_database_that_was_taken_away_is_missed(folder: Path) -> None:
    """Commits to a file without a name would be lost in silence; put back, it is committed to again."""
    with StateStore.open(folder) as store:
        store.path.rename(folder / "elsewhere")
        with pytest.raises(StateError, match=f"{store.path} was moved or deleted .*; put it back, or restart"):
            store.commit(Commit())
        store.path.touch()
        with pytest.raises(StateError, match="was moved or deleted"):
            store.commit(Commit())
        (folder / "elsewhere").replace(store.path)
        store.commit(Commit({"c#1": checkpoint("c")}))

    assert list(load(folder).checkpoints) == ["c#1"]


@given(seed=st.integers(0, 2**32), numbers=st.lists(st.booleans(), min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_any_commits_merged_in_any_portions_load_as_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, numbers: list[bool]
) -> None:
    """Random commits, some of them merged with the next ones first, give what the model of them gives."""
    rng = random.Random(seed)
    commits = [random_commit(rng, number) for number in range(len(numbers))]
    with StateStore.open(tmp_path_factory.mktemp("state") / "s") as store:
        waiting: Commit | None = None
        for one, is_written in zip(commits, numbers, strict=True):
            waiting = one if waiting is None else waiting.merged_with(one)
            if is_written:
                store.commit(waiting)
                waiting = None
        if waiting is not None:
            store.commit(waiting)

        assert comparable(store.load()) == states(commits)[-1]


def test_merge_keeps_the_later_word() -> None:
    """Of two commits the later one's error and status count, and the earlier one's where the later says nothing."""
    first = Commit(last_error=LastError(1, "first"), run=RunStatus(1, "a"))
    second = Commit(last_error=LastError(2, "second"), run=RunStatus(2, "b"))

    merged = [first.merged_with(second), second.merged_with(Commit())]

    assert [(one.last_error, one.run) for one in merged] == [(second.last_error, second.run)] * 2


def test_merged_commits_do_not_grow_with_the_entries(folder: Path) -> None:
    """While commits fail for hours, what waits holds the last value of each key, and only counts that still matter."""
    waiting = Commit()
    for second in range(200):
        occurrences = [(f"{second:032x}", second * 1000, 0)]
        waiting = waiting.merged_with(
            Commit({"c#1": checkpoint("c", offset_bytes=second)}, {"c": changes({"s": open_session()}, occurrences)})
        )

    assert len(waiting.checkpoints) == 1
    assert len(waiting.logs["c"].sessions) == 1
    assert len(waiting.logs["c"].occurrences) == WINDOW_MS // 1000 + 1
