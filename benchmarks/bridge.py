"""The bridge as people run it: its command, in a process of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchmarks.processes import Used, run_to_end
from tests.real.bridge import COMMAND

_EVERY_SESSION = re.compile(r"^[0-9a-f]{32}\t|^-\t", re.MULTILINE)


def replay(log: Path, endpoint: str) -> Used:
    """What a replay uses until the backend has acknowledged every span. RuntimeError when one was not delivered."""
    used, output = run_to_end([*COMMAND, "replay", log, "--endpoint", endpoint])
    if not _EVERY_SESSION.search(output):
        raise RuntimeError(f"the replay of {log} named no session:\n{output[-2000:]}")
    return used


def show_version() -> Used:
    """What `--version` uses."""
    return run_to_end([*COMMAND, "--version"])[0]


def parse_only(log: Path) -> tuple[Used, int]:
    """The plain limit: find the entries, give each to orjson, do nothing with them. What it uses, and their number."""
    used, output = run_to_end([sys.executable, "-m", "benchmarks.plain", log])
    return used, int(output)
