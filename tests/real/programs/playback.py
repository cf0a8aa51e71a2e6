"""Plays a recorded server: `playback.py IN OUT RECEIVED` answers each line of its input with the next share of OUT.

What it receives is written to RECEIVED.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Until its input ends; then what is left of OUT."""
    expected, output, received = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), Path(sys.argv[3])
    lines = max(1, expected.read_bytes().count(b"\n"))
    sent = 0
    with received.open("wb") as file:
        for number, line in enumerate(sys.stdin.buffer, 1):
            file.write(line)
            share = len(output) * number // lines
            sys.stdout.buffer.write(output[sent:share])
            sys.stdout.buffer.flush()
            sent = max(sent, share)
    sys.stdout.buffer.write(output[sent:])


if __name__ == "__main__":
    main()
