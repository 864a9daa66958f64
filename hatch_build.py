"""What hatchling calls: compile the operations of cadec_cli/models/int8, where there is a C compiler.

They go into the wheel, or for an editable install into the checkout.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "cadec_cli/models/int8"


class CompiledKernels(BuildHookInterface):  # type: ignore[misc] # known to the build's environment alone
    """Runs before a wheel is built, and after."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and take what came of it along."""
        module = compiling(Path(self.root))
        if version == "editable":
            module.compile_all()
            return
        self.scratch = tempfile.TemporaryDirectory()
        made = module.compile_all(Path(self.scratch.name))
        if made:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"].update({str(path): f"{KERNELS}/{path.name}" for path in made})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clear away."""
        if version != "editable":
            self.scratch.cleanup()


def compiling(root: Path) -> ModuleType:
    """The module that compiles, from its file: nothing of cadec can be imported here."""
    spec = importlib.util.spec_from_file_location("compile", root / KERNELS / "compile.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
