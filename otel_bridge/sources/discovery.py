"""Where the server logs by default, and what it writes there now.

mcp-debugger 0.24.2 without `--log-file` writes to `node_modules/@debugmcp/logs/` of wherever it was installed: npm's
cache for `npx`, the global packages, or the project's own. Newer ones follow the specification: a folder in the
system's temporary one. In a container it is `/app/logs`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from otel_bridge.sources.claims import claimed_paths, claims_folder
from otel_bridge.sources.files import is_file, is_folder
from otel_bridge.sources.names import is_log, split
from otel_bridge.sources.processes import Holders

_LOGS = "node_modules/@debugmcp/logs"
_PREFIX = "debug-mcp-server"
_COMMAND = b"mcp-debugger"
"""What stands in the command line of a running server, however it was started."""


def npm_global_roots(environ: Mapping[str, str], home: Path) -> list[Path]:
    """Where npm keeps global packages, without running npm: its settings, then beside `node` on the path, then the
    usual prefixes. Folders that do not exist are left out."""
    prefixes = [
        Path(environ[name]) for name in ("npm_config_prefix", "NPM_CONFIG_PREFIX", "PREFIX") if environ.get(name)
    ]
    prefixes += _prefixes_of_npmrc(home / ".npmrc")
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and is_file(Path(folder) / "node"):
            prefixes += [Path(folder).parent, (Path(folder) / "node").resolve().parent.parent]
    prefixes += [Path("/usr/local"), Path("/usr"), Path("/opt/homebrew")]
    roots = dict.fromkeys(prefix / "lib" for prefix in prefixes)
    return [root for root in roots if is_folder(root / "node_modules")]


def _prefixes_of_npmrc(path: Path) -> list[Path]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "prefix" and value.strip():
            found.append(Path(value.strip().strip("\"'")).expanduser())
    return found


def default_folders(environ: Mapping[str, str], home: Path, here: Path) -> list[str]:
    """Every folder in which the server may log by default, whether it is there yet or not."""
    folders = [root / _LOGS for root in npm_global_roots(environ, home)]
    with suppress(OSError):
        folders += sorted(home.glob(f".npm/_npx/*/{_LOGS}"))
    folders += [here / _LOGS, Path(tempfile.gettempdir()) / _PREFIX, Path("/app/logs")]
    return [str(folder) for folder in dict.fromkeys(folders)]


class DefaultPlaces:
    """Where the server logs now: to be given to `Follower` as its patterns, which asks every two seconds.

    What servers hold open comes first; then the default folders that are there. (One that is missing is no pattern
    yet: its parent need not be watched for it.) What a living wrapper has claimed is left to it.
    """

    def __init__(
        self, holders: Holders, environ: Mapping[str, str], home: Path, here: Path, claims: Path | None = None
    ) -> None:
        self._claims = claims_folder() if claims is None else claims
        self.claimed: frozenset[str] = frozenset()
        """What living wrappers follow, as of the last call: in the folders, too, these are to be left to them."""
        self._holders = holders
        self._environ = environ
        self._home = home
        self._here = here
        self._held: dict[str, None] = {}

    def __call__(self) -> Sequence[str]:
        folders = [folder for folder in default_folders(self._environ, self._home, self._here) if is_folder(folder)]
        # Once seen, a log is kept when its server ends: its last lines, or another server, may still come.
        self._held.update(dict.fromkeys(held_logs(self._holders)))
        self.claimed = claimed_paths(self._claims)
        return [*(path for path in self._held if path not in self.claimed), *folders]


def held_logs(holders: Holders) -> list[str]:
    """The logs that running servers of this user have open, wherever they lie."""
    return [path for path in holders.written_paths(_COMMAND) if is_log(split(path)[1])]


def default_places(holders: Holders) -> DefaultPlaces:
    """The places of this process's user, environment and working folder."""
    return DefaultPlaces(holders, os.environ, Path.home(), Path.cwd())
