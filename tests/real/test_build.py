"""How the real parts are made and found."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.real.parts import build
from tests.real.parts.build import BuiltPart, CannotBuildError

COUNT_AND_MAKE = ("sh", "-c", 'echo made >> "$COUNT" && cat version > product')


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that defines a part named `toy`, with its cache and its count of builds beside it."""
    monkeypatch.setattr(build, "HERE", tmp_path / "definitions")
    monkeypatch.setenv("OTEL_BRIDGE_PARTS", str(tmp_path / "parts"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    folder = tmp_path / "definitions" / "toy"
    folder.mkdir(parents=True)
    (folder / "version").write_text("1")
    return folder


def toy(*commands: tuple[str, ...], needs: tuple[str, ...] = ("sh",)) -> BuiltPart:
    """A part that is made by these commands."""
    return BuiltPart("toy", needs, commands, "product", "no time")


def test_part_is_built_once(definition: Path, tmp_path: Path) -> None:
    """However many ask for a part at the same time, it is built once, and found by all."""
    part = toy(COUNT_AND_MAKE)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: part.make(), range(4)))

    product = part.locate()
    assert product is not None
    assert product.read_text() == "1"
    assert (tmp_path / "count").read_text() == "made\n"


def test_changed_definition_is_another_part(definition: Path) -> None:
    """A part whose definition changed is not there until it is built anew; the old one is found again with the old."""
    part = toy(COUNT_AND_MAKE)
    part.make()
    (definition / "version").write_text("2")
    assert part.locate() is None

    part.make()
    (definition / "version").write_text("1")

    product = part.locate()
    assert product is not None
    assert product.read_text() == "1"


def test_failed_build_leaves_no_part(definition: Path) -> None:
    """A build that fails shows the end of its output, leaves nothing to be found, and can be tried again."""
    failing = toy(("sh", "-c", "touch product; echo no network >&2; exit 3"))
    with pytest.raises(CannotBuildError, match="no network"):
        failing.make()
    assert failing.locate() is None

    with pytest.raises(CannotBuildError, match="no network"):
        failing.make()


def test_missing_command_is_named(definition: Path) -> None:
    """A part whose build needs a command that is not installed names that command."""
    with pytest.raises(CannotBuildError, match="needs no-such-command"):
        toy(COUNT_AND_MAKE, needs=("no-such-command",)).make()


@pytest.mark.parametrize(("ci", "status"), [("false", 0), ("true", 1)])
def test_missing_part_fails_in_ci_only(
    definition: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, status: int
) -> None:
    """A part that can't be made is named with the tests that it leaves out, and is a failure in CI alone."""
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(build, "PARTS", {"toy": toy(COUNT_AND_MAKE, needs=("no-such-command",))})

    assert status == build.main([])
    assert "pytest.mark.real('toy'), are left out" in capsys.readouterr().err


def test_unknown_part_is_a_usage_error() -> None:
    """Run as a script, it says which parts there are when asked for another."""
    done = subprocess.run([sys.executable, build.__file__, "nope"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert f"no such part: nope; there are {', '.join(build.PARTS)}" in done.stderr
