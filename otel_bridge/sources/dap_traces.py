"""Where the server writes the DAP trace of a session: `<tree>/<sessionId>/run-<ms>/dap-trace-<sessionId>.ndjson`."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from otel_bridge.sources.files import is_file, is_folder

TREE = "sessions"
_SAFE_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
"""An id comes from the log: one with a separator or a wildcard in it must not lead elsewhere."""


def trees(logs: Iterable[str]) -> list[Path]:
    """The session trees that are there: beside each log, and where the specification has it."""
    specified = Path(tempfile.gettempdir()) / "debug-mcp-server" / TREE
    candidates = [*(Path(log).parent / TREE for log in logs), specified]
    return [tree for tree in dict.fromkeys(candidates) if _is_ours(tree)]


def _is_ours(tree: Path) -> bool:
    """Whether a tree is there and its owner is this user: anybody can make a folder among temporary files."""
    try:
        found = tree.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (os.geteuid(), _owner_of_log(tree))


def _owner_of_log(tree: Path) -> int:
    """Beside a log, the tree may be its server's, whoever that is; not so among temporary files."""
    return tree.parent.stat().st_uid if tree.parent.name != "debug-mcp-server" else os.geteuid()


def traces_of(session_id: str, roots: Iterable[Path], given: Iterable[Path] = ()) -> list[str]:
    """The trace files of a session, oldest run first: in the trees, and among `given` files and folders."""
    if not _SAFE_ID.fullmatch(session_id):
        return []
    name = f"dap-trace-{session_id}.ndjson"
    found = [path for root in roots for path in root.glob(f"{session_id}/run-*/{name}")]
    for path in given:
        found += [path] if path.name == name else path.rglob(name) if is_folder(path) else ()
    return [str(path) for path in sorted(dict.fromkeys(found), key=_run) if is_file(path)]


def _run(path: Path) -> tuple[int, str]:
    run = path.parent.name.removeprefix("run-")
    return (int(run) if run.isdecimal() and len(run) < 20 else 0), str(path)
