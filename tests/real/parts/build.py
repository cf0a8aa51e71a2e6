"""Gets the real parts that tests run against: the server, Jaeger, the collector, winston, logrotate.

`python tests/real/parts/build.py [NAME...]` makes the parts named, or all. A part lives in a folder that every clone
shares (`$OTEL_BRIDGE_PARTS`, else `otel-bridge-parts` in the user's cache folder), under its name and a hash of the
files that define it: a changed definition is built anew, an unchanged one never again. To add a part, add a line to
`PARTS` and, beside this module, a folder of that name with the files that pin its versions.

Uses the standard library alone, so that it runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STRIPPED = "-ldflags=-s -w"


class CannotBuildError(Exception):
    """A part can't be made here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class BuiltPart:
    """A part made from the files in the folder of its name by running `commands` in a copy of that folder.

    `product` is the file, relative to that copy, that tests run. `takes` is said before the first build.
    """

    name: str
    needs: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    product: str
    takes: str

    def folder(self) -> Path:
        """Where this definition's build goes."""
        recipe = (self.commands, self.product, platform.system(), platform.machine())
        digest = hashlib.sha256(repr(recipe).encode())
        for path in self._definition():
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return parts_folder() / f"{self.name}-{digest.hexdigest()[:12]}"

    def locate(self) -> Path | None:
        """The product, or None when it is not built."""
        product = self.folder() / self.product
        return product if product.exists() else None

    def make(self) -> None:
        """Builds the part, once however many ask at the same time.

        Raises CannotBuildError when a command that it needs is missing or fails.
        """
        for command in self.needs:
            if shutil.which(command) is None:
                raise CannotBuildError(f"needs {command}, which is not installed")
        with _alone(self.name):
            if self.locate() is None:
                _say(f"{self.name}: building, {self.takes} the first time ...")
                self._build()

    def _build(self) -> None:
        target = self.folder()
        scratch = target.parent / f".{target.name}"
        # Only the holder of the lock builds: what is there was left by a build that was killed.
        for left_over in (scratch, target):
            shutil.rmtree(left_over, ignore_errors=True)
        scratch.mkdir()
        for path in self._definition():
            shutil.copy(path, scratch)
        with (target.parent / f"{target.name}.log").open("wb") as log:
            for command in self.commands:
                _run(command, log.name, log.fileno(), scratch)
        scratch.rename(target)

    def _definition(self) -> list[Path]:
        return sorted(path for path in (HERE / self.name).iterdir() if path.is_file())


@dataclass(frozen=True, slots=True)
class DebianPart:
    """A command from a Debian package, by default the one of the same name."""

    name: str
    package: str = ""

    def locate(self) -> Path | None:
        """The command, or None when it is not installed."""
        found = shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        return Path(found) if found else None

    def make(self) -> None:
        """Installs the package. Raises CannotBuildError when this user can't."""
        package = self.package or self.name
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise CannotBuildError(f"needs the Debian package {package}: apt-get install {package}")
        with _alone("apt-get"), (parts_folder() / "apt-get.log").open("wb") as log:
            install = (
                "apt-get",
                "install",
                "--yes",
                "--no-install-recommends",
                "-o",
                "DPkg::Lock::Timeout=600",
                package,
            )
            try:
                _run(install, log.name, log.fileno(), parts_folder())
            except CannotBuildError:
                # On a new machine there is no package list yet, on an old one it is out of date.
                _run(("apt-get", "update"), log.name, log.fileno(), parts_folder())
                _run(install, log.name, log.fileno(), parts_folder())


@dataclass(frozen=True, slots=True)
class Right:
    """Something that this machine grants or not, tried by a command that leaves nothing behind.

    No build can make it, so tests that need it are left out without it, also in CI.
    """

    name: str
    trial: tuple[str, ...]
    needs: str

    def locate(self) -> Path | None:
        """The trial's program, or None when the right is not granted."""
        program = shutil.which(self.trial[0])
        if program is None or subprocess.run(self.trial, capture_output=True, check=False).returncode:
            return None
        return Path(program)

    def make(self) -> None:
        """Raises CannotBuildError."""
        raise CannotBuildError(f"needs {self.needs}")


Part = BuiltPart | DebianPart | Right

NPM_CI = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")

PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        BuiltPart(
            "server", ("node", "npm"), (NPM_CI,), "node_modules/@debugmcp/mcp-debugger/dist/cli.mjs", "a few seconds"
        ),
        BuiltPart(
            "everything",
            ("node", "npm"),
            (NPM_CI,),
            "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
            "a few seconds",
        ),
        BuiltPart("winston", ("node", "npm"), (NPM_CI,), "node_modules/winston/package.json", "a few seconds"),
        DebianPart("logrotate"),
        Right("tmpfs", ("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"), "root, who may mount a tmpfs"),
        DebianPart("prometheus"),
        DebianPart("systemd-analyze", "systemd"),
        BuiltPart(
            "compose",
            ("go",),
            (("go", "build", "-trimpath", STRIPPED, "-o", "compose", "github.com/compose-spec/compose-go/v2/cmd"),),
            "compose",
            "half a minute",
        ),
        BuiltPart(
            "collector",
            ("go",),
            (("go", "tool", "builder", "--config=builder.yaml", "--ldflags=-s -w"),),
            "out/collector",
            "about 4 minutes",
        ),
        BuiltPart(
            "gateway",
            ("go",),
            (("go", "tool", "builder", "--config=builder.yaml", "--ldflags=-s -w"),),
            "out/gateway",
            "about 4 minutes",
        ),
        BuiltPart(
            "jaeger",
            ("go",),
            (("go", "build", "-trimpath", STRIPPED, "github.com/jaegertracing/jaeger/cmd/jaeger"),),
            "jaeger",
            "about 5 minutes",
        ),
    )
}


def parts_folder() -> Path:
    """The folder that holds all parts, made if it is not there."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("OTEL_BRIDGE_PARTS") or Path(cache) / "otel-bridge-parts")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def in_ci() -> bool:
    """Whether a missing part is a failure."""
    return os.environ.get("CI") == "true"


def make(names: Sequence[str]) -> bool:
    """Makes the parts named and returns whether all are there; says what is missing and which tests that leaves out."""
    complete = True
    for name in names:
        part = PARTS[name]
        if part.locate() is not None:
            continue
        try:
            part.make()
        except CannotBuildError as error:
            complete = complete and isinstance(part, Right)
            _say(f"{name}: {error}\n    the tests that need it, pytest.mark.real({name!r}), are left out")
    return complete


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Waits until no other process makes the same part."""
    with (parts_folder() / f".lock-{name}").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"{name}: waiting for another build of it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: tuple[str, ...], log_path: str, log: int, folder: Path) -> None:
    """Runs a command with its output in the log; CannotBuildError shows the end of the log when it fails."""
    settings = {"CGO_ENABLED": "0", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, env=os.environ | settings
    )
    if done.returncode != 0:
        end = Path(log_path).read_text(errors="replace").splitlines()[-10:]
        raise CannotBuildError("\n    ".join([f"{' '.join(command)} failed, see {log_path}:", *end]))


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Makes the parts; 0 when the tests can run, 1 in CI when one is missing, 2 for an unknown name."""
    unknown = [name for name in arguments if name not in PARTS]
    if unknown:
        _say(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
        return 2
    complete = make(arguments or list(PARTS))
    return 0 if complete or not in_ci() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
