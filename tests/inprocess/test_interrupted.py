"""Ctrl-C in a program that converts a log, wherever it strikes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.recordings import Recording

PROGRAM = """
import random, signal, sys
from otel_bridge import convert

lines = open(sys.argv[1], "rb").read().splitlines()
moments = random.Random(1)
is_armed = False

def interrupt(number, frame):
    if is_armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
for _ in range(1500):
    signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0001, 0.004))
    try:
        is_armed = True
        list(convert(lines))
        is_armed = False
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
print(interrupted)
"""


def test_an_interrupt_ends_a_conversion_and_not_the_process(tmp_path: Path) -> None:
    """It is raised where it strikes, also within the core that is compiled."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)

    done = subprocess.run([sys.executable, "-c", PROGRAM, log], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
