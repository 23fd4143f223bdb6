"""PyTorch's private modules, and the stand-in for `torch`: what only programs written for PyTorch import.

This folder is on the package's `__path__`, so `flambeau._dynamo` finds `flambeau/_torch/_dynamo`, and `torch._dynamo`
does while Flambeau stands in for PyTorch. Modules here have the short name, in pickles too. The type checker knows the
folders alone: code of the package imports `flambeau._torch._dynamo`, and the finder below gives it the same module.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PREFIX = f"{__name__}."
_PACKAGE = __name__.partition(".")[0]


class SameModule(Loader):
    """Gives a module that has another name, without a second copy of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        other = getattr(module.__spec__, "name", self.name)
        module.__spec__ = self.spec  # the import system has put the other name's there
        # A package may have taken a function out of a part that has the function's name. To import the part by its
        # other name would put the part in the function's place: it has that name already.
        for name, part in [*sys.modules.items()]:
            if name.startswith(f"{self.name}."):
                sys.modules.setdefault(f"{other}{name.removeprefix(self.name)}", part)


class _Finder(MetaPathFinder):
    """Finds `flambeau._dynamo` for `flambeau._torch._dynamo`."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        return ModuleSpec(fullname, SameModule(f"{_PACKAGE}.{fullname.removeprefix(_PREFIX)}"))


sys.meta_path.insert(0, _Finder())
