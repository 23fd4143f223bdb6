"""Flambeau under the name of `torch`: programs that import PyTorch run on Flambeau unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

PACKAGE = "flambeau"
FOLDER = str(Path(__file__).parent)
"""On the path of a process, this folder makes its first `import torch` call `stand_in_for_torch`."""

_SHARED = frozenset({"_VF"})
"""The modules with a leading underscore that PyTorch has too; all others are Flambeau's engine room."""


def _no_counterpart(name: str) -> ModuleNotFoundError:
    from .. import __version__

    return ModuleNotFoundError(
        f"No module named {name!r}: Flambeau {__version__} stands in for torch here, and has no counterpart of it",
        name=name,
    )


def counterpart(name: str) -> str:
    """The name of Flambeau's module for a module of PyTorch's: 'flambeau.nn' for 'torch.nn'."""
    parts = name.split(".")[1:]
    private = bool(parts) and parts[0].startswith("_") and parts[0] not in _SHARED
    found = ".".join([PACKAGE, *parts])
    try:
        if private or importlib.util.find_spec(found) is None:
            raise _no_counterpart(name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(PACKAGE):
            raise
        raise _no_counterpart(name) from None  # a module where a package was asked for: torch.fft.x
    return found


class _SameModule(Loader):
    """Gives Flambeau's own module under another name, without a second copy of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has put the other name's there


class _TorchFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        return ModuleSpec(fullname, _SameModule(counterpart(fullname)))


def stand_in_for_torch() -> None:
    """From now on, `import torch`, `from torch import nn`, `import torch.nn.functional as F` give Flambeau's modules.

    Every module of Flambeau answers to PyTorch's name, those that load later included. What Flambeau lacks is a
    `ModuleNotFoundError` that says so. Call it before anything imports PyTorch; `flambeau run` does it for a script.
    """
    package = sys.modules[PACKAGE]
    present = sys.modules.get("torch", package)
    if present is not package and Path(getattr(present, "__file__", None) or "").parent != Path(FOLDER):
        raise RuntimeError(
            "torch is already imported, from "
            f"{getattr(present, '__file__', 'an unknown place')}: call stand_in_for_torch() before the first import "
            "of it"
        )
    if not any(isinstance(each, _TorchFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, _TorchFinder())
    sys.modules["torch"] = package
