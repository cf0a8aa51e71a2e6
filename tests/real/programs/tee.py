"""Starts a command and writes down every byte that passes to and from it: `tee.py FOLDER CMD...`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path


def copy(source: int, target: int, record: Path) -> None:
    """Moves bytes from one end to the other until it ends, then closes that."""
    with record.open("wb", buffering=0) as file:
        while data := os.read(source, 1 << 16):
            file.write(data)
            while data:
                try:
                    data = data[os.write(target, data) :]
                except BrokenPipeError:
                    return
    os.close(target)


def main() -> int:
    """The command's exit code."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        stdin = os.dup(child.stdin.fileno())
        child.stdin.close()
        threading.Thread(target=copy, args=(0, stdin, folder / "in"), daemon=True).start()
        copy(child.stdout.fileno(), os.dup(1), folder / "out")
        return child.wait()


if __name__ == "__main__":
    sys.exit(main())
