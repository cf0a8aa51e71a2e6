"""Build hook of the wheel: compiles the core wherever there is a C compiler; `HATCH_BUILD_NO_HOOKS=true` does without.

mypyc turns the modules that every entry passes through into extension modules of the same names. Where nothing can be
compiled, the wheel holds the same modules as Python only; they stay in a compiled one too, for tracebacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CORE = (
    "otel_bridge/entries/*.py",
    "otel_bridge/sessions/*.py",
    "otel_bridge/pipeline/mapping_stage.py",
    "otel_bridge/export/encode.py",
    "otel_bridge/view/totals.py",
)
NOT_OF_IT = ("__init__.py", "capture.py", "flaw.py", "span.py")
"""Packages without code, and the classes that programs are given: they keep their documentation."""
PROBE = "#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return NULL; }\n"


class CompiledCore(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the extension modules to a wheel, and its platform to the wheel's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles, in a folder outside the checkout. Only says so where there is no C compiler or no mypyc.

        With both there, ends the build with mypyc's or the compiler's own words if they fail.
        """
        if version == "editable":
            return
        self._folder = TemporaryDirectory(prefix="otel-bridge-build-")
        folder = Path(self._folder.name)
        if reason := _missing(folder):
            self.app.display_warning(f"otel-bridge: the core stays Python, which costs more CPU: {reason}")
            return
        from mypyc.build import mypycify

        root = Path(self.root)
        found = [path for pattern in CORE for path in root.glob(pattern) if path.name not in NOT_OF_IT]
        sources = sorted(str(path.relative_to(root)) for path in found)
        # What they import is read for its types alone: not every build has the stubs that all of it needs.
        checks = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
        modules = mypycify([*checks, *sources], target_dir=str(folder / "c"), group_name="otel_bridge", debug_level="0")
        _compile(modules, folder / "core")
        built = {str(path): str(path.relative_to(folder / "core")) for path in (folder / "core").rglob("*.so")}
        build_data["force_include"] |= built
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the folder: what is needed of it is in the wheel."""
        if version != "editable":
            self._folder.cleanup()


def _missing(folder: Path) -> str:
    """Why nothing can be compiled here; empty if it can."""
    try:
        from mypyc.build import mypycify  # noqa: F401
        from setuptools import Extension
        from setuptools.errors import BaseError, CCompilerError
    except ImportError as error:
        return str(error)
    source = folder / "probe.c"
    source.write_text(PROBE)
    try:
        _compile([Extension("probe", [str(source)])], folder / "probe")
    except (BaseError, CCompilerError) as error:
        return f"no C compiler that finds Python.h ({error})"
    return ""


def _compile(modules: Sequence[object], into: Path) -> None:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    command = build_ext(Distribution({"name": "otel-bridge", "ext_modules": modules}))
    command.build_lib, command.build_temp = str(into), f"{into}.temp"
    command.ensure_finalized()
    command.run()
