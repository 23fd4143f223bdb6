"""Flambeau under the name of `torch`: programs that import PyTorch run on Flambeau unchanged.

While it stands in, every public module of Flambeau is a module of `torch`: under that name in `sys.modules`, by its
`__name__`, and by what its classes and functions say, so that pickles name `torch`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from flambeau._core.names.documentation import page
from flambeau._core.names.names_only import spec_of
from flambeau._dispatch.public.namespaces import written
from flambeau._torch import SameModule
from flambeau.torch_version import TorchVersion

PACKAGE = "flambeau"
FOLDER = str(Path(__file__).parent)
"""On the path of a process, this folder makes its first `import torch` call `stand_in_for_torch`."""
MARK = "__flambeau__"
"""What a module called `torch` has that is there only to be replaced."""

_SHARED = sys.modules[PACKAGE]._OF_PYTORCH
"""The modules with a leading underscore that PyTorch has too; all others are Flambeau's engine room."""

_RENAMED = {"_operators": "_ops"}
"""Modules that have another name in PyTorch: the engine has a folder of that name."""

_OWN_NAMES = {name: own for own, name in _RENAMED.items()}

_ENGINE_CLASSES = {
    "torch": "_core.tensor:Tensor _core.size:Size _core.device:device,layout,memory_format "
    "_core.dtype:dtype,finfo,iinfo _core.generator:Generator",
    "torch.storage": "_core.storage:UntypedStorage _core.typed_storage:TypedStorage",
    "torch.utils.hooks": "_core.hooks:RemovableHandle",
}
"""Classes of the engine room that PyTorch has under a public name."""


def version() -> TorchVersion:
    """PyTorch's version with Flambeau's behind it: 2.13.0+flambeau.0.3.0."""
    from flambeau import _RELEASE
    from flambeau.version import PYTORCH

    return TorchVersion(f"{PYTORCH}+{PACKAGE}.{_RELEASE}")


def _release() -> str:
    return str(sys.modules[PACKAGE]._RELEASE)


def _no_counterpart(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"No module named {name!r}: Flambeau {_release()} stands in for torch here, and has no counterpart of it. "
        f"{page('names')} lists what it has",
        name=name,
    )


def torch_module(name: str) -> str | None:
    """What PyTorch calls a module of Flambeau's: 'torch.nn' for 'flambeau.nn'; None for the engine room."""
    first, *parts = name.split(".")
    if first != PACKAGE or (parts and parts[0].startswith("_") and parts[0] not in _SHARED):
        return None
    parts = [_RENAMED.get(each, each) for each in parts[:1]] + parts[1:]
    return ".".join(parts if parts[:1] == ["functorch"] else ["torch", *parts])


def counterpart(name: str) -> str:
    """The name of Flambeau's module for a module of PyTorch's: 'flambeau.nn' for 'torch.nn'."""
    found = ".".join([PACKAGE, *[_OWN_NAMES.get(each, each) for each in name.split(".")[1:]]])
    try:
        if torch_module(found) is None or importlib.util.find_spec(found) is None:
            raise _no_counterpart(name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(PACKAGE):
            raise
        raise _no_counterpart(name) from None  # a module where a package was asked for: torch.fft.x
    return found


class _StandInModule(ModuleType):
    """A module of Flambeau's that says, where it lacks a name, in whose place it stands."""

    def __getattr__(self, name: str) -> Any:
        if self.__name__.startswith("torch.ops."):
            space = self.__name__.removeprefix("torch.ops.")
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'", name=name, obj=self)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r}: Flambeau {_release()} stands in for torch here. "
            f"{page('names')} lists what it has",
            name=name,
            obj=self,
        )


def _rename(module: ModuleType, own: str) -> None:
    """Let a module of Flambeau's, called `own` there, be one of `torch`."""
    name = torch_module(own)
    if name is None:
        return
    sys.modules[name] = module
    module.__name__ = name
    for value in list(vars(module).values()):
        value = written(value)
        if isinstance(value, (type, FunctionType)) and value.__module__ == own:
            value.__module__ = name
    if type(module) is ModuleType:
        module.__class__ = _StandInModule


class _RenamingLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _rename(sys.modules.get(self.name, module), self.name)


class _TorchDistribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says about `torch`."""

    def read_text(self, filename: str) -> str | None:
        """The one file there is."""
        if filename not in ("METADATA", "PKG-INFO"):
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version()}\nSummary: {PACKAGE}, standing in for torch\n"

    def locate_file(self, path: Any) -> Any:
        """Where a file of it would be."""
        return Path(FOLDER).parents[2] / path


class _TorchFinder:
    """Finds modules of `torch`, and renames those of Flambeau that are imported later."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        first = fullname.partition(".")[0]
        if first == "torch":
            return ModuleSpec(fullname, SameModule(counterpart(fullname)))
        if first == "functorch":
            return ModuleSpec(fullname, SameModule(counterpart(f"torch.{fullname}")))
        if first != PACKAGE or torch_module(fullname) is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:  # a folder without files is left of an older version
            spec = spec_of(fullname, _rename) or spec
        if spec is not None and type(spec.loader) is SourceFileLoader and spec.origin is not None:
            spec.loader = _RenamingLoader(fullname, spec.origin)
        return spec

    @staticmethod
    def find_distributions(context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """The distribution `torch`, before any that is installed."""
        name = getattr(context, "name", None)
        if name is None or name.lower().replace("_", "-") == "torch":
            yield _TorchDistribution()


def stand_in_for_torch() -> None:
    """From now on, `import torch` and all imports below it give Flambeau's modules.

    Every module of Flambeau answers to PyTorch's name, those that load later included, and `torch.__version__` is
    PyTorch's with Flambeau's behind it. What Flambeau lacks is a `ModuleNotFoundError` or `AttributeError` that says
    so. Call it before anything imports PyTorch; `flambeau run` does it for a script, `import flambeau.as_torch` too.

    Example:
        >>> torch.stand_in_for_torch()                  # doctest: +SKIP
        >>> from torch import nn                        # doctest: +SKIP
    """
    package = sys.modules[PACKAGE]
    present = sys.modules.get("torch", package)
    if present is not package and not hasattr(present, MARK):
        raise RuntimeError(
            "torch is already imported, from "
            f"{getattr(present, '__file__', 'an unknown place')}: call stand_in_for_torch() before the first import "
            "of it"
        )
    if any(isinstance(each, _TorchFinder) for each in sys.meta_path):
        sys.modules["torch"] = package
        return
    sys.meta_path.insert(0, _TorchFinder())
    from flambeau._dispatch.public import registry
    from flambeau._serialization.pytorch_pickles import name_rebuilders

    for name, module in list(sys.modules.items()):
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            _rename(module, name)
    for home, listed in _ENGINE_CLASSES.items():
        for entry in listed.split():
            place, _, names = entry.partition(":")
            module = importlib.import_module(f"{PACKAGE}.{place}")
            for each in names.split(","):
                getattr(module, each).__module__ = home
    name_rebuilders()
    registry.say_at_home("torch")
    vars(package)["__version__"] = version()
    vars(sys.modules[f"{PACKAGE}.version"])["__version__"] = version()
