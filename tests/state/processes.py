"""Other processes on the same state folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from otel_bridge.state.store import StateStore
with StateStore.open(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_bridge(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the folder, until its standard input ends."""
    arguments = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()
