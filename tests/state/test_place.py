"""Where the state lies, and which folders are fit for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from otel_bridge.errors import StateError
from otel_bridge.state.place import prepare_state_folder, state_folder

DEFAULT = platformdirs.user_state_path("otel-bridge")


@pytest.mark.parametrize(
    ("argument", "environ", "expected"),
    [
        (Path("/a"), {"OTEL_BRIDGE_STATE_DIR": "/b"}, Path("/a")),
        (None, {"OTEL_BRIDGE_STATE_DIR": "/b"}, Path("/b")),
        (None, {"OTEL_BRIDGE_STATE_DIR": "~/c"}, Path.home() / "c"),
        (Path("d"), {}, Path.cwd() / "d"),
        (None, {"OTEL_BRIDGE_STATE_DIR": ""}, DEFAULT),
        (None, {}, DEFAULT),
    ],
)
def test_argument_wins_over_variable_and_variable_over_default(
    argument: Path | None, environ: dict[str, str], expected: Path
) -> None:
    """`--state-dir`, then OTEL_BRIDGE_STATE_DIR, then the platform's folder; always an absolute path."""
    assert state_folder(argument, environ) == expected


@pytest.fixture
def lax_umask() -> Iterator[None]:
    """A process that lets everybody read and write what it makes."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("lax_umask")
def test_folders_are_private_whatever_the_umask_is(tmp_path: Path) -> None:
    """The folder and the parents that have to be made are 0700."""
    prepare_state_folder(tmp_path / "a" / "b")

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can write there can put a file in the place of ours: the message says which command mends it."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(StateError, match=f"other users can write to the state folder .*; run chmod 700 {folder}"):
        prepare_state_folder(folder)


def test_folder_that_only_we_can_write_is_taken_as_it_is(tmp_path: Path) -> None:
    """A folder that was there keeps its mode: it may hold more than our state."""
    folder = tmp_path / "mine"
    folder.mkdir(0o755)

    prepare_state_folder(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not ours is refused, with a place inside it that could be."""
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)

    with pytest.raises(StateError, match=f"belongs to another user .*such as --state-dir {tmp_path}/otel-bridge"):
        prepare_state_folder(tmp_path)


def test_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    """A file, or a path that leads through one, is no folder: the message names it and the flag."""
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(StateError, match=f"{file} is a file; give another with --state-dir"):
        prepare_state_folder(file)
    with pytest.raises(StateError, match=f"cannot make the state folder {file}/below: not a directory"):
        prepare_state_folder(file / "below")
