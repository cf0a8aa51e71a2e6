"""What the command to run says about the server: whether it is mcp-debugger, and where it logs.

Only mcp-debugger gets a log file: a server that does not know `--log-file` would refuse to start. So a path counts only
where it is the program that is run, and not where a server is merely given it, as a folder to serve.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.errors import StateError
from otel_bridge.state.place import reason

_PACKAGE = re.compile(r"@debugmcp/mcp-debugger(?:@.+)?")
_NAME = "mcp-debugger"
_LOG_FILE = "--log-file"


@dataclass(frozen=True, slots=True)
class _Launcher:
    """A program that runs another one: its subcommands that do, its options with a value of their own, and how many
    words of its own it takes before the program's (a duration)."""

    commands: str = ""
    valued: str = ""
    own_words: int = 0


_NPM = "-p --package -w --workspace --registry --prefix --cache --userconfig"
_UV = (
    "-p --python --from --with --with-editable --with-requirements --index --index-url --directory --project --env-file"
)
_NODE = "-r --require --import --loader --experimental-loader -C --conditions --env-file --title"
_LAUNCHERS = {
    "npx": _Launcher(valued=_NPM),
    "pnpx": _Launcher(valued=_NPM),
    "bunx": _Launcher(valued="-p --package"),
    "uvx": _Launcher(valued=_UV),
    "npm": _Launcher("exec x", _NPM),
    "pnpm": _Launcher("dlx exec", "-C --dir -F --filter --package"),
    "yarn": _Launcher("dlx exec", "-p --package --cwd"),
    "bun": _Launcher("run x", "-r --preload --cwd --env-file"),
    "deno": _Launcher("run", "-c --config --import-map --env-file"),
    "uv": _Launcher("run tool", _UV),
    "pipx": _Launcher("run", "--spec --python --pip-args --index-url"),
    "node": _Launcher(valued=_NODE),
    "nodejs": _Launcher(valued=_NODE),
    "tsx": _Launcher(valued=_NODE + " --tsconfig"),
    "ts-node": _Launcher(valued="-P --project -r --require"),
    "python": _Launcher(valued="-W -X"),
    "sh": _Launcher(),
    "bash": _Launcher(),
    "env": _Launcher(valued="-u --unset -C --chdir"),
    "nice": _Launcher(valued="-n --adjustment"),
    "nohup": _Launcher(),
    "setsid": _Launcher(),
    "stdbuf": _Launcher(valued="-i -o -e"),
    "sudo": _Launcher(valued="-u --user -g --group"),
    "timeout": _Launcher(valued="-k --kill-after -s --signal", own_words=1),
}
"""No `docker`: in a container, a path of this machine is another place, or none."""

_CODE = {"-c", "-e", "-m", "-p", "--call", "--eval", "--print"}
"""Options whose value is what is run; no program's name follows."""

_INSTALLED_IN = re.compile(r".*/(?:node_modules|site-packages|\.?venv)/")
"""What lies in these is somebody else's, whatever the project is called."""


def is_debugger(command: Sequence[str]) -> bool:
    """Whether the server is mcp-debugger: a word is its package, with or without a version, or its program is a path
    with a part of its name.

    The program is the command, or what `npx`, `node` and the like are told to run; of what lies in `node_modules` only
    the path from there on counts.
    """
    return any(_PACKAGE.fullmatch(word) for word in command) or _is_named(_program(command))


def _is_named(program: str) -> bool:
    return _NAME in _INSTALLED_IN.sub("", program).split("/")


def _program(words: Sequence[str]) -> str:
    """The path or name of what is run in the end; empty where that is not told."""
    while words:
        launcher = _LAUNCHERS.get(re.sub(r"[\d.]*(?:\.exe)?$", "", words[0].rpartition("/")[2]))
        if launcher is None:
            return words[0]
        words = _launched(words[1:], launcher)
    return ""


def _launched(words: Sequence[str], launcher: _Launcher) -> Sequence[str]:
    """The words that a launcher runs as a command."""
    commands, own_words = launcher.commands.split(), launcher.own_words
    is_valued = False
    for number, word in enumerate(words):
        if is_valued:
            is_valued = False
        elif word in launcher.valued.split():
            is_valued = True
        elif word in _CODE:
            return ()
        elif word.startswith("-") or word in commands or re.fullmatch(r"\w+=.*", word):
            continue
        elif own_words:
            own_words -= 1
        else:
            return words[number:]
    return ()


def log_file_of(command: Sequence[str]) -> Path | None:
    """The log file that the command already names (of several the last, as the server does), as an absolute path.

    Raises StateError for a relative one where the current folder is gone.
    """
    named = None
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == _LOG_FILE and following:
            named = following
        elif word.startswith(f"{_LOG_FILE}="):
            named = word.removeprefix(f"{_LOG_FILE}=")
    try:
        return Path(named).absolute() if named else None
    except OSError as error:
        raise StateError(f"cannot tell where {named} is: {reason(error)}", "give an absolute path") from error


def with_log_file(command: Sequence[str], path: Path) -> list[str]:
    """The command with a log file."""
    return [*command, _LOG_FILE, str(path)]
