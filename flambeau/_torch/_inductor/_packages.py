"""Programs compiled ahead of time, under the names of `torch._inductor`."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from flambeau.compiler.ahead.load import AheadOfTime, aot_load
from flambeau.compiler.ahead.save import aot_compile
from flambeau.export.exported_program import ExportedProgram


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    *,
    package_path: str | os.PathLike[str] | None = None,
    inductor_configs: Any = None,
) -> str:
    """Write an exported program, with machine code for this processor, to one file; the path of that file."""
    if not isinstance(exported_program, ExportedProgram):
        raise ValueError("Only ExportedProgram is supported")
    if exported_program.example_inputs is None:
        raise RuntimeError("aoti_compile_and_package: the program does not say what it was exported with")
    if package_path is None:
        package_path = os.path.join(tempfile.mkdtemp(), "model.pt2")
    args, kwargs = exported_program.example_inputs
    return str(aot_compile(exported_program, args, package_path, kwargs))


def aoti_load_package(path: str | os.PathLike[str], model_name: str = "model", **options: Any) -> AheadOfTime:
    """A program from such a file, to be called as the module was. It runs machine code: mind where it comes from."""
    return aot_load(path)
