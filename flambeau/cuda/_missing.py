"""What the names of `torch.cuda` say where there is no such device, and where they are where there is one."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import FunctionType
from typing import Any

from .._core.names.absent import Table


def is_present() -> bool:
    """Whether there is a CUDA device; what looks is loaded when it is asked."""
    from .._backends.cuda.runtime.detection import is_present

    return is_present()


def where_present(modules: str, table: Table) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module: its names as one of `modules` has them where there is a device."""
    absent, names = table.parts()

    def get(name: str) -> Any:
        if name in table.makers and is_present():
            for module in modules.split():
                found = getattr(importlib.import_module(f"flambeau.cuda.{module}"), name, None)
                if found is not None:
                    return found
        found = absent(name)
        if type(found) is FunctionType and "__device_modules__" not in vars(found):
            vars(found)["__device_modules__"] = modules
            found.__doc__ = _doc_on_a_device(modules, name) or found.__doc__
        return found

    return get, names


def _doc_on_a_device(modules: str, name: str) -> str:
    """The docstring of a function where there is a device, below its signature; "" where no source has it.

    It is read from the source: importing these modules prepares the whole backend, which takes long.
    """
    for module in modules.split():
        found = _functions_of(module).get(name)
        if found is not None:
            return f"{name}({ast.unparse(found.args)})\n\n{cleandoc(ast.get_docstring(found) or '')}"
    return ""


@cache
def _functions_of(module: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


NOT_COMPILED = (
    "Torch not compiled with CUDA enabled: torch.cuda.{name} needs a CUDA device, and this version of Flambeau has none"
)
NEEDS_CUDA = "torch.cuda.{name} needs a CUDA device, and this version of Flambeau has none"
_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short"
TENSORS = " ".join(f"{each}Tensor" for each in _TYPES.split())
STORAGES = " ".join(f"{each}Storage" for each in (*_TYPES.split(), "ComplexDouble", "ComplexFloat"))

kernels = Table("flambeau").raising(
    NotImplementedError,
    "Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is a kernel of another device, in PyTorch "
    "too",
    functions="batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator "
    "cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu "
    "cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm miopen_convolution "
    "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss "
    "miopen_depthwise_convolution miopen_rnn",
)
"""Functions of `torch` itself that run on GPUs alone."""
kernels.returning(lambda: False, functions="cudnn_is_acceptable")
