"""Where the server logs by default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from otel_bridge.sources.claims import claim
from otel_bridge.sources.discovery import DefaultPlaces, default_folders, npm_global_roots
from otel_bridge.sources.processes import Holders
from tests.sources.test_processes import holding

_LOGS = "node_modules/@debugmcp/logs"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def global_packages(prefix: Path) -> Path:
    """Make a prefix in which npm keeps global packages; their root."""
    (prefix / "lib" / "node_modules").mkdir(parents=True)
    return prefix / "lib"


@pytest.mark.parametrize("name", ["npm_config_prefix", "NPM_CONFIG_PREFIX", "PREFIX"])
def test_the_prefix_of_npm_is_taken_from_the_environment(tmp_path: Path, home: Path, name: str) -> None:
    """npm's own variables say where global packages lie."""
    root = global_packages(tmp_path / "npm")

    assert root in npm_global_roots({name: str(tmp_path / "npm")}, home)


def test_the_prefix_of_npm_is_taken_from_its_settings(tmp_path: Path, home: Path) -> None:
    """`prefix` in `.npmrc` says where global packages lie; other lines do not disturb."""
    root = global_packages(tmp_path / "npm")
    (home / ".npmrc").write_text(f'# mine\nregistry=https://x\n prefix = "{tmp_path / "npm"}"\nprefix=\n')

    assert root in npm_global_roots({}, home)


def test_the_prefix_of_npm_is_taken_from_where_node_is(tmp_path: Path, home: Path) -> None:
    """Global packages lie beside `node` on the path, also behind a link to it."""
    beside, behind = global_packages(tmp_path / "a"), global_packages(tmp_path / "b")
    for prefix in ("a", "b"):
        (tmp_path / prefix / "bin").mkdir()
    (tmp_path / "b" / "bin" / "node").touch()
    (tmp_path / "a" / "bin" / "node").symlink_to(tmp_path / "b" / "bin" / "node")

    found = npm_global_roots({"PATH": f"{tmp_path / 'none'}::{tmp_path / 'a' / 'bin'}"}, home)
    assert [root for root in found if root.is_relative_to(tmp_path)] == [beside, behind]


def test_every_default_place_is_named(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npx's cache, the project, the temporary folder and the container's are default places, there or not."""
    (home / ".npm/_npx/1a2b" / _LOGS).mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    found = default_folders({}, home, tmp_path / "project")

    for folder in (
        home / ".npm/_npx/1a2b" / _LOGS,
        tmp_path / "project" / _LOGS,
        tmp_path / "tmp" / "debug-mcp-server",
        Path("/app/logs"),
    ):
        assert str(folder) in found


def places(home: Path, project: Path, environ: Mapping[str, str], claims: Path) -> DefaultPlaces:
    """The default places of an imagined user."""
    return DefaultPlaces(Holders(refresh_s=0), environ, home, project, claims)


def test_folders_are_places_once_they_are_there(tmp_path: Path, home: Path) -> None:
    """A default folder that appears later is looked for again and found."""
    find = places(home, tmp_path / "project", {}, tmp_path / "claims")
    before = [place for place in find() if place.startswith(str(tmp_path))]
    (tmp_path / "project" / _LOGS).mkdir(parents=True)

    assert before == []
    assert str(tmp_path / "project" / _LOGS) in find()


def test_what_servers_hold_open_is_a_place_and_stays_one(tmp_path: Path, home: Path) -> None:
    """A running server's log is followed wherever it lies, and after the server's end."""
    find = places(home, tmp_path, {}, tmp_path / "claims")
    log, other = tmp_path / "anywhere" / "server.log", tmp_path / "anywhere" / "other.txt"
    log.parent.mkdir()
    with holding(log, "a", "node_modules/@debugmcp/mcp-debugger"), holding(other, "a", "mcp-debugger"):
        during = find()

    assert str(log) in during
    assert str(other) not in during
    assert str(log) in find()


def test_what_a_wrapper_has_claimed_is_left_to_it(tmp_path: Path, home: Path) -> None:
    """A server's log that a living wrapper follows is no place."""
    find = places(home, tmp_path, {}, tmp_path / "claims")
    log = tmp_path / "server.log"
    held = claim(tmp_path / "claims", [str(log)])
    with holding(log, "a", "mcp-debugger"):
        claimed = find()
        held.release()
        free = find()

    assert str(log) not in claimed
    assert str(log) in free
