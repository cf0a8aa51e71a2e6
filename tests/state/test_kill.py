"""Killed at any moment, a bridge finds all it had committed, and nothing half done."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from otel_bridge.state.store import StateStore
from tests.state.commits import comparable, random_commit, states

COMMITS = 40


def main(folder: str, seed: str) -> None:
    """Commit, and say so after each; run as a process that is killed on the way."""
    rng = random.Random(int(seed))
    with StateStore.open(Path(folder)) as store:
        for number in range(COMMITS):
            store.commit(random_commit(rng, number))
            sys.stdout.write(".")
            sys.stdout.flush()


@pytest.mark.parametrize("seed", range(12))
def test_killed_bridge_finds_all_that_was_committed(tmp_path: Path, seed: int) -> None:
    """After SIGKILL the state is that after a number of commits, none of the acknowledged ones missing."""
    rng = random.Random(seed)
    commits = [random_commit(rng, number) for number in range(COMMITS)]
    until = random.Random(-seed).randint(0, COMMITS - 1)
    arguments = [sys.executable, "-m", "tests.state.test_kill", str(tmp_path), str(seed)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read(until)
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read()

    with StateStore.open(tmp_path) as store:
        found = comparable(store.load())

    assert found in states(commits)[len(said) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
