"""Permissions as an ordinary user meets them: root would not notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534

# Privileges are dropped only when all is imported: the interpreter itself may lie where an ordinary user has no entry.
SCRIPT = """
import os, sys
from pathlib import Path
from otel_bridge.errors import StateError
from otel_bridge.state.commit import Commit
from otel_bridge.state.reading import read_state
from otel_bridge.state.store import StateStore

def use(folder):
    with StateStore.open(folder) as store:
        store.load()
        store.commit(Commit())
    return "committed"

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    print({"use": use, "look": read_state}[sys.argv[1]](Path(sys.argv[2])))
except StateError as error:
    print(error)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an ordinary user, in a place that everybody can reach."""
    path = Path(tempfile.mkdtemp(prefix="otel-bridge-test-"))
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    yield path
    path.chmod(0o700)
    shutil.rmtree(path)


def said(what: str, folder: Path) -> str:
    """What comes of using the folder, or of a look at it, as the owner of the folder without any privilege."""
    arguments = [sys.executable, "-c", SCRIPT, what, str(folder)]
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_folder_that_became_read_only_is_named_with_the_command_that_mends_it(folder: Path) -> None:
    """A state folder that cannot be written gives an error, whether there is a state in it or not."""
    folder.chmod(0o500)
    assert said("use", folder) == f"the state folder {folder} cannot be written; run chmod 700 {folder}"

    folder.chmod(0o700)
    assert said("use", folder) == "committed"

    folder.chmod(0o500)
    assert said("use", folder) == f"the state folder {folder} cannot be written; run chmod 700 {folder}"


def test_folder_below_one_that_cannot_be_written_is_named(folder: Path) -> None:
    """A folder that cannot be made is named with the reason and the flag for another."""
    folder.chmod(0o500)

    message = f"cannot make the state folder {folder}/a/b: permission denied; give another with --state-dir"
    assert said("use", folder / "a" / "b") == message


def test_unreadable_database_is_named(folder: Path) -> None:
    """A database that lost its mode is named, to whoever wants to write it and to whoever wants to look."""
    assert said("use", folder) == "committed"
    (folder / "state.db").chmod(0)

    assert said("use", folder).startswith(f"cannot open {folder}/state.db: permission denied; check its owner and mode")
    assert said("look", folder) == (
        f"cannot read {folder}/state.db: permission denied; run this as the user who runs the bridge"
    )


def test_state_in_a_closed_folder_cannot_be_seen_and_that_is_said(folder: Path) -> None:
    """A folder without permission to enter is not taken for one without state."""
    assert said("use", folder) == "committed"
    folder.chmod(0)

    assert said("look", folder) == (
        f"cannot read {folder}/state.db: permission denied; run this as the user who runs the bridge"
    )
