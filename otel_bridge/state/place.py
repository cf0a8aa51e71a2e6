"""Where the state lies, and whether that is a place which nobody else can write to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from otel_bridge.errors import StateError

VARIABLE = "OTEL_BRIDGE_STATE_DIR"
DATABASE = "state.db"
DEAD_LETTERS = "dead-letters.jsonl"
FOLDER_MODE = 0o700
FILE_MODE = 0o600


class NotAFolderError(StateError):
    """A file is named where the state folder should be: a mistake in the arguments, with their exit status."""

    exit_code = 2


def state_folder(argument: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """`--state-dir`, then OTEL_BRIDGE_STATE_DIR (empty counts as not set), then the platform's folder for state.

    Raises StateError where that cannot be told: by a user without a home, as containers have them, or of `~nobody`.
    """
    chosen = argument or (Path(value) if (value := environ.get(VARIABLE, "")) else None)
    # XDG_STATE_HOME is platformdirs' business; it wants an absolute path, and so do messages.
    try:
        return (chosen or platformdirs.user_state_path("otel-bridge")).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        why = reason(error) if isinstance(error, OSError) else "there is no such home folder"
        raise StateError(f"cannot tell where the state folder is: {why}", "set HOME, or give --state-dir") from error


def prepare_state_folder(folder: Path) -> None:
    """Make the folder (0700, with its parents) unless it is there, and check that it is fit to hold state.

    Raises StateError when it cannot be made, is no folder, belongs to somebody else, or can be written by others: who
    can write there can put a file in the place of ours.
    """
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(FOLDER_MODE, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise StateError(f"cannot make the state folder {folder}: {reason(error)}", _ANOTHER) from error
    refuse_file(folder)
    if found.st_uid != os.geteuid():
        raise StateError(
            f"the state folder {folder} belongs to another user (uid {found.st_uid})",
            f"give a folder of your own, such as --state-dir {folder / 'otel-bridge'}",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StateError(f"other users can write to the state folder {folder}", f"run chmod 700 {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StateError(f"the state folder {folder} cannot be written", f"run chmod 700 {folder}")


def refuse_file(folder: Path) -> None:
    """Raises NotAFolderError when what is there under this name is no folder; what cannot be asked is let through."""
    try:
        is_file = not stat.S_ISDIR(folder.stat().st_mode)
    except OSError:
        return
    if is_file:
        raise NotAFolderError(f"the state folder {folder} is a file", _ANOTHER)


def can_make(folder: Path) -> StateError | None:
    """Why a folder that is not there could not be made, or None if it could; nothing is made."""
    there = next(path for path in folder.parents if path.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return None
    why = "cannot be written" if there.is_dir() else "is no folder"
    return StateError(f"cannot make the state folder {folder}: {there} {why}", _ANOTHER)


_ANOTHER = "give another with --state-dir"


def open_own_file(path: Path) -> int:
    """A descriptor of a regular file of ours, made (0600) when missing; read and write, closed on exec.

    Raises StateError for anything else under that name, and for what the system refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise not_regular(path) from error
        raise StateError(f"cannot open {path}: {reason(error)}", "check its owner and mode") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise not_regular(path)
    if stat.S_IMODE(found.st_mode) != FILE_MODE:
        os.fchmod(descriptor, FILE_MODE)  # a file that was copied here, or made under a strange umask
    return descriptor


def not_regular(path: Path) -> StateError:
    """The error for a folder, link, FIFO or device where a file of ours should be."""
    return StateError(f"{path} is no regular file", "move it away, or give another folder with --state-dir")


def reason(error: OSError) -> str:
    """An OSError in the words of the system, without the path (which the message around it already names)."""
    return (error.strerror or str(error)).lower()
