"""Running a command as a person or a script runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from pty import openpty
from typing import NamedTuple

NEUTRAL = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("OTEL_", "COV_"))
    and name.lower() not in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
}
"""This process's environment without what would change where spans go."""


_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Ran(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str


def run(*arguments: str | Path, environ: Mapping[str, str] | None = None) -> Ran:
    """Run `otel-bridge` with its output in pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "otel_bridge", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**NEUTRAL, **(environ or {})},
        check=False,
        timeout=60,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_on_terminal(*arguments: str | Path, columns: int = 120) -> Ran:
    """Run `otel-bridge` with its standard output on a terminal; what it wrote there, without colours and CRs."""
    ours, theirs = openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "otel_bridge", *map(str, arguments)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        env={**NEUTRAL, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)},
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not data:
                break
            written += data
        os.close(ours)
        assert process.stderr is not None
        err = process.stderr.read()
        status = process.wait(60)
    return Ran(status, _STYLE.sub("", written.decode()).replace("\r\n", "\n"), err)
