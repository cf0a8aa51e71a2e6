"""`otel-bridge run` where its places are missing or take nothing: the server runs, and its calls are exported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from otel_bridge.errors import StateError
from otel_bridge.sessions.capture import Capture
from otel_bridge.sources.claims import claims_folder
from otel_bridge.state.place import state_folder
from otel_bridge.testing import Receiver
from otel_bridge.wrapper import run_folder
from otel_bridge.wrapper.command import log_file_of
from otel_bridge.wrapper.run_folder import RUNS, Description, RunFolder
from tests.wrapper.wrapped import COMMAND, Wrapped

WITHOUT_HOME = (
    sys.executable,
    "-P",
    "-c",
    "import os, pwd; os.environ.pop('HOME', None); pwd.getpwuid = {}.__getitem__;"
    "from otel_bridge.cli.main import main; main()",
    "run",
)
"""As a user whom the system does not know, in a container."""

WITH_A_FULL_DISK = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *COMMAND)
"""No file can be larger than some KiB, which a state is."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


@pytest.fixture
def server(tmp_path: Path) -> Sequence[str | Path]:
    """A server that is taken for mcp-debugger."""
    folder = tmp_path / "mcp-debugger"
    folder.mkdir()
    (folder / "server.py").write_bytes((Path(__file__).parent / "server.py").read_bytes())
    return [sys.executable, folder / "server.py"]


def check_exported(run: Wrapped, receiver: Receiver, said: str) -> None:
    """Calls pass and are exported, and it is said once what is not."""
    for number in range(5):
        assert run.call(number, "tools/call", name="echo")["id"] == number
    assert run.close() == 0
    assert [span.name for span in receiver.spans] == ["tools/call echo"] * 5
    assert run.said.count(said) == 1
    assert run.said.count("calls are exported, states of the debugged program are not") == 1
    assert "Traceback" not in run.said
    assert "failed" not in run.said


def test_a_user_without_a_home(tmp_path: Path, receiver: Receiver, server: Sequence[str | Path]) -> None:
    """There is no place for a state then, unless one is given."""
    environ = {"OTEL_BRIDGE_STATE_DIR": "", "XDG_RUNTIME_DIR": str(tmp_path)}
    run = Wrapped(
        tmp_path / "run", server, endpoint=receiver.endpoint, program=WITHOUT_HOME, env=environ, has_state_dir=False
    )
    with run:
        check_exported(run, receiver, "set HOME, or give --state-dir")
    assert not (tmp_path / "run" / "~").exists()


def test_a_disk_that_takes_no_state(tmp_path: Path, receiver: Receiver, server: Sequence[str | Path]) -> None:
    """The worker goes on without one, and leaves nothing behind."""
    with Wrapped(tmp_path / "run", server, endpoint=receiver.endpoint, program=WITH_A_FULL_DISK) as run:
        check_exported(run, receiver, "make room on its disk")
        assert list(run.state.glob("runs/*")) == []


def test_a_folder_that_cannot_be_made_whole_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its lock, which would else be open for ever."""

    def refuse(folder: RunFolder, description: Description) -> None:
        raise StateError("cannot write it", "free some space")

    monkeypatch.setattr(run_folder.RunFolder, "describe", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(StateError, match="free some space"):
        RunFolder.create(tmp_path, None, 1, Capture.FULL)

    assert list((tmp_path / RUNS).iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_unknown_home_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the state's place hears what to do; claims have a place that is nobody else's."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)

    with pytest.raises(StateError, match="set HOME, or give --state-dir"):
        state_folder(None, {})
    with pytest.raises(StateError, match="no such home"):
        state_folder(Path("~nobody-here/state"), {})
    assert claims_folder() == Path(f"/tmp/otel-bridge-{os.getuid()}/claims")


def test_a_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths lie nowhere there."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(StateError, match="cannot tell where logs/a"):
        log_file_of(["mcp-debugger", "--log-file", "logs/a.log"])
    with pytest.raises(StateError, match="cannot tell where the state folder is"):
        state_folder(Path("state"))
    assert log_file_of(["mcp-debugger", "--log-file", "/a.log"]) == Path("/a.log")
