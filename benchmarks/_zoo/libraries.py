"""Imports timm and transformers where their other dependencies are absent, or are built for PyTorch alone.

Models need nothing of torchvision but one class to compare layers with, and transformers refuses releases of
`tokenizers` that are newer than itself, which no model here uses. Both frameworks import the libraries in this way.
"""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, ClassVar


class InterpolationMode(enum.Enum):
    """Torchvision's names of interpolations, which timm has tables of."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class _Torchvision(ModuleType):
    """A module of torchvision in which every name is a class of its own."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = InterpolationMode if name == "InterpolationMode" else type(name, (), {})
        setattr(self, name, made)
        return made


class _Finder:
    """Finds the modules of torchvision."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        ours = name.partition(".")[0] == "torchvision"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if ours else None  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Torchvision(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def import_timm() -> Any:
    """Timm, with stand-ins for what it imports of torchvision."""
    if "timm" not in sys.modules:
        had = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "torchvision"}
        finder: Any = _Finder()
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module("timm")
        finally:
            sys.meta_path.remove(finder)
            for name in [*sys.modules]:
                if name.partition(".")[0] == "torchvision":
                    del sys.modules[name]
            sys.modules.update(had)
    return sys.modules["timm"]


def import_transformers() -> Any:
    """Transformers, whichever releases of its dependencies there are."""
    sys.modules.setdefault("torchvision", None)  # type: ignore[arg-type]  # absent: its operators need PyTorch's own
    unchecked: Any = ModuleType("transformers.dependency_versions_check")
    unchecked.dep_version_check = lambda pkg, hint=None: None
    sys.modules.setdefault(unchecked.__name__, unchecked)
    return importlib.import_module("transformers")
