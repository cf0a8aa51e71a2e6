"""Where the server logs by default, and what it writes there now.

mcp-debugger 0.24.2 without `--log-file` writes to `node_modules/@debugmcp/logs/` of wherever it was installed: npm's
cache for `npx`, the global packages, or the project's own. Newer ones follow the specification: a folder in the
system's temporary one. In a container it is `/app/logs`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from otel_bridge.sources.names import is_log, split, uncompressed

_LOGS = "node_modules/@debugmcp/logs"
_PREFIX = "debug-mcp-server"


def npm_global_roots(environ: Mapping[str, str], home: Path) -> list[Path]:
    """Where npm keeps global packages, without running npm: its settings, then beside `node` on the path, then the
    usual prefixes. Folders that do not exist are left out."""
    prefixes = [
        Path(environ[name]) for name in ("npm_config_prefix", "NPM_CONFIG_PREFIX", "PREFIX") if environ.get(name)
    ]
    prefixes += _prefixes_of_npmrc(home / ".npmrc")
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and (Path(folder) / "node").exists():
            prefixes += [Path(folder).parent, (Path(folder) / "node").resolve().parent.parent]
    prefixes += [Path("/usr/local"), Path("/usr"), Path("/opt/homebrew")]
    roots = dict.fromkeys(prefix / "lib" for prefix in prefixes)
    return [root for root in roots if (root / "node_modules").is_dir()]


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
    try:
        folders += sorted(home.glob(f".npm/_npx/*/{_LOGS}"))
    except OSError:
        pass
    folders += [here / _LOGS, Path(tempfile.gettempdir()) / _PREFIX, Path("/app/logs")]
    return [str(folder) for folder in dict.fromkeys(folders)]
