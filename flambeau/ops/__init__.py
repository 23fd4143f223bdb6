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

_FILES = frozenset(os.listdir(os.path.dirname(__file__)))
_TWINS = (
    ("torchvision", "_C", "._torchvision"),
    ("torchaudio/lib", "_torchaudio.", "._audio"),
    ("torchaudio/lib", "libtorchaudio.", "._audio"),
)
"""Compiled parts by folder and beginning of the file's name, and the modules that have their operators in Python."""


def load_library(path: str | os.PathLike[str]) -> None:
    """Load the operators of a library's compiled part.

    Those of torchvision and torchaudio have twins in Python, which are taken instead. No other library can be loaded:
    it would be linked with PyTorch's C++ part, and an `OSError` says so.
    """
    file = Path(path)
    for folder, prefix, twins in _TWINS:
        if file.parent.as_posix().endswith(folder) and file.name.startswith(prefix):
            importlib.import_module(twins, __package__).register()
            return
    raise OSError(f"Could not load this library: {path}: Flambeau has no C++ part that it could be linked with")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if f"{name}.py" in _FILES:  # also `from torch.ops import ...`
        return importlib.import_module(f".{name}", __package__)
    made = globals()[name] = Namespace(name)  # the operators may be defined later
    return made
