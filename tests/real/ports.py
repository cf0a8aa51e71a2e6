"""Free loopback ports that stay this process's own, so that a killed part can come back on them."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

# Below the ports that Linux and macOS give to outgoing connections, which could otherwise take one between two starts.
RANGE = range(20_000, 32_000)

_held: list[IO[bytes]] = []


def reserve_port() -> int:
    """A free TCP port on 127.0.0.1; no other test process gets it until this one ends."""
    folder = Path(tempfile.gettempdir()) / f"otel-bridge-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for port in random.sample(RANGE, 200):
        claim = (folder / str(port)).open("wb")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            _held.append(claim)
            return port
    raise OSError("no free loopback port found")
