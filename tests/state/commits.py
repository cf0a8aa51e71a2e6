"""Commits made at random, and a model that says what a store must give back after them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from otel_bridge.sessions.saved import Json, MappingChanges
from otel_bridge.state.commit import Commit, Counts
from otel_bridge.state.store import SavedLog, SavedState

CHAINS = ("server.log-1", "caf\udce9.log-2")
"""The second one is a file whose name is no UTF-8, as Python writes it."""


def checkpoint(chain: str, order: int = 1024, offset_bytes: int = 0, path: str = "/logs/server.log") -> Json:
    """The values of a checkpoint, as `Checkpoint.to_json` gives them."""
    return {
        "chain": chain,
        "order": order,
        "base": path,
        "path": path,
        "device": 1,
        "inode": 2,
        "head_bytes": 4,
        "head_hash": "abcd",
        "offset_bytes": offset_bytes,
        "seam_hash": "ef01",
        "size_bytes": offset_bytes,
        "last_entry_ms": None,
        "ended": False,
    }


def log_values(latest_ms: int = 0, *, loose: Json | None = None) -> Json:
    """The values of a log's own mapping."""
    return {
        "latest_ms": latest_ms,
        "number": 0,
        "partial_roots": 0,
        "loose": loose or {},
        "creates": [],
    }


def changes(
    sessions: dict[str, Json | None] | None = None,
    occurrences: Sequence[tuple[str, int, int]] = (),
    *,
    latest_ms: int = 0,
    loose: Json | None = None,
) -> MappingChanges:
    """Changes of one log."""
    return MappingChanges(log_values(latest_ms, loose=loose), sessions or {}, tuple(occurrences))


def open_session(name: str = "debug", root_ms: int = 1_700_000_000_000, last_ms: int | None = None) -> Json:
    """The values of an open session, as far as the state looks at them."""
    last_ms = root_ms if last_ms is None else last_ms
    return {"name": name, "language": "python", "root_ms": root_ms, "last_ms": last_ms, "book": {}}


def ended_session(name: str = "debug") -> Json:
    """The values of a session that is over."""
    return {"ended": {"root_ms": 1, "name": name, "language": "python", "closed": True}}


def random_commit(rng: random.Random, number: int) -> Commit:
    """One of the commits that a bridge could make; the same for the same state of `rng`."""
    checkpoints: dict[str, Json | None] = {}
    logs: dict[str, MappingChanges] = {}
    for chain in rng.sample(CHAINS, rng.randint(0, len(CHAINS))):
        for order in rng.sample((1024, 2048, 3072), rng.randint(0, 2)):
            gone = rng.random() < 0.2
            checkpoints[f"{chain}#{order}"] = None if gone else checkpoint(chain, order, number * 100)
        sessions: dict[str, Json | None] = {}
        for session in rng.sample("abcdefgh", rng.randint(0, 4)):
            kind = rng.random()
            if kind < 0.6:
                sessions[session] = open_session(f"{number}\x1b", number) | {"padding": "x" * rng.randint(0, 3000)}
            else:
                sessions[session] = ended_session(str(number)) if kind < 0.8 else None
        counted = [(f"{rng.randint(0, 30):032x}", 1000 + number, number) for _ in range(rng.randint(0, 5))]
        logs[chain] = changes(sessions, list({one[0]: one for one in counted}.values()), latest_ms=number)
    forgotten = frozenset(rng.sample(CHAINS, 1)) if rng.random() < 0.1 else frozenset()
    # Something open in each log, so that none is dropped when it is loaded without a file.
    logs = {
        chain: MappingChanges({**log.log, "loose": {"null": {}}}, log.sessions, log.occurrences)
        for chain, log in logs.items()
    }
    return Commit(checkpoints, logs, forgotten, Counts(rng.randint(0, 9), lost_bytes={"gap": rng.randint(0, 2)}))


class Model:
    """What a store must hold: the same rules, without a database."""

    def __init__(self) -> None:
        self.checkpoints: dict[str, Json] = {}
        self.logs: dict[str, tuple[Json, dict[str, Json], dict[str, tuple[str, int, int]]]] = {}

    def apply(self, commit: Commit) -> None:
        """Do what the commit says."""
        for chain in commit.forgotten_chains:
            self.logs.pop(chain, None)
            self.checkpoints = {key: one for key, one in self.checkpoints.items() if one["chain"] != chain}
        for generation, values in commit.checkpoints.items():
            self.checkpoints.pop(generation, None)
            if values is not None:
                self.checkpoints[generation] = values
        for chain, log in commit.logs.items():
            _, sessions, occurrences = self.logs.get(chain, ({}, {}, {}))
            for session, value in log.sessions.items():
                sessions.pop(session, None)
                if value is not None:
                    sessions[session] = value
            occurrences |= {one[0]: one for one in log.occurrences}
            self.logs[chain] = (dict(log.log), sessions, occurrences)

    def state(self) -> SavedState:
        """What `load` must give."""
        logs = {
            chain: SavedLog(log, dict(sessions), tuple(occurrences.values()))
            for chain, (log, sessions, occurrences) in self.logs.items()
        }
        return SavedState(dict(self.checkpoints), logs)


def comparable(state: SavedState) -> object:
    """A state for `==`: sessions with their order, because that is the order in which they ended."""
    return (
        state.checkpoints,
        {
            chain: (dict(log.log), list(log.sessions.items()), sorted(map(tuple, log.occurrences)))
            for chain, log in state.logs.items()
        },
    )


def states(commits: Sequence[Commit]) -> list[object]:
    """What a store may hold after each number of commits, from none on."""
    model = Model()
    found = [comparable(model.state())]
    for commit in commits:
        model.apply(commit)
        found.append(comparable(model.state()))
    return found
