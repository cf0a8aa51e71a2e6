"""Build hook of the wheel whose core is compiled: `HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip install .`

mypyc turns the modules that every entry passes through into extension modules of the same names. Without a C compiler,
or where nobody asks for it, the wheel holds the same modules as Python only; they stay in this one too, for tracebacks.
"""

from __future__ import annotations

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
NOT_OF_IT = ("__init__.py", "span.py")
"""Packages without code, and the classes that programs are given: they keep their documentation."""


class CompiledCore(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the extension modules to a wheel, and its platform to the wheel's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles, in a folder outside the checkout. Ends the build with mypyc's or the C compiler's own words."""
        if version == "editable":
            return
        from mypyc.build import mypycify
        from setuptools import Distribution
        from setuptools.command.build_ext import build_ext

        self._folder = TemporaryDirectory(prefix="otel-bridge-build-")
        folder = Path(self._folder.name)
        root = Path(self.root)
        found = [path for pattern in CORE for path in root.glob(pattern) if path.name not in NOT_OF_IT]
        sources = sorted(str(path.relative_to(root)) for path in found)
        # What they import is read for its types alone: not every build has the stubs that all of it needs.
        checks = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
        modules = mypycify([*checks, *sources], target_dir=str(folder / "c"), group_name="otel_bridge", debug_level="0")
        command = build_ext(Distribution({"name": self.metadata.name, "ext_modules": modules}))
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.ensure_finalized()
        command.run()
        built = {str(path): str(path.relative_to(folder / "lib")) for path in (folder / "lib").rglob("*.so")}
        build_data["force_include"] |= built
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the folder: what is needed of it is in the wheel."""
        if version != "editable":
            self._folder.cleanup()
