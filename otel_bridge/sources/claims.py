"""Which logs a running wrapper already follows, so that nobody follows them a second time.

Each claim is a small file in one folder: locked for as long as the process that made it lives, it names the paths. The
lock, not the file, is the claim: the system lets go of it however the process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path

from otel_bridge.sources.files import is_folder

_MAX_BYTES = 65_536
_SUFFIX = ".claim"


def claims_folder() -> Path:
    """Where this user's claims lie, whatever state folder a bridge has: among run-time files, else beside the state.

    A user without a home has them among temporary files.

    (platformdirs' own answer warns on standard error wherever the variable is missing.)
    """
    import platformdirs

    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and is_folder(runtime):
        return Path(runtime) / "otel-bridge" / "claims"
    try:
        folder = platformdirs.user_state_path("otel-bridge")
    except RuntimeError:  # older releases give a path that begins with `~` instead
        folder = Path()
    return (folder if folder.is_absolute() else Path(f"/tmp/otel-bridge-{os.getuid()}")) / "claims"


class Claim:
    """A claim that is held until it is released or this process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the claim up."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):  # without its lock the file says nothing
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def claim(folder: Path, paths: Iterable[str]) -> Claim:
    """Claim logs, by absolute path, for this process. The folder is made if need be (0700).

    Raises OSError when the claim cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
    # It gets its name only when it is locked: one without a lock is taken for a dead process's and cleared away.
    unnamed = path.with_suffix(".new")
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, json.dumps([str(Path(path).absolute()) for path in paths]).encode())
        unnamed.rename(path)
    except OSError:
        os.close(descriptor)
        unnamed.unlink(missing_ok=True)
        raise
    return Claim(path, descriptor)


def claimed_paths(folder: Path) -> frozenset[str]:
    """The paths that living processes have claimed. Claims of dead processes are cleared away."""
    claimed: set[str] = set()
    try:
        found = sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:
        return frozenset()
    for path in found:
        try:
            claimed.update(_read(path))
        except (OSError, ValueError):
            continue
    return frozenset(claimed)


def _read(path: Path) -> list[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            paths = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
            return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
        path.unlink(missing_ok=True)
        return []
    finally:
        os.close(descriptor)
