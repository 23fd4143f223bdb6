"""Operators under the names of `torch.ops`: those of `aten`, with their overloads."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from .._dispatch.public.overloads import OpOverload, OpOverloadPacket
from . import aten, flambeau, higher_order, prims
from ._custom import Namespace

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "flambeau", "higher_order", "load_library", "prims"]

_FOLDER = Path(__file__).parent


def load_library(path: str | os.PathLike[str]) -> None:
    """Load the operators of a library's compiled part: those of torchvision have twins in Python, others cannot."""
    file = Path(path)
    if file.parent.name == "torchvision" and file.name.startswith("_C"):
        from ._torchvision import register

        register()
        return
    raise OSError(f"Could not load this library: {path}: Flambeau has no C++ part that it could be linked with")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (_FOLDER / f"{name}.py").is_file():  # also `from torch.ops import ...`
        return importlib.import_module(f".{name}", __package__)
    return Namespace(name)  # the operators may be defined later
