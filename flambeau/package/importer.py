"""Where classes and functions come from: the environment, an archive, or several of them in turn."""

from __future__ import annotations

import contextlib
import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from ._mangling import demangle, is_mangled, prefix_of

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "sys_importer"]

Answer = TypeVar("Answer")


class ObjNotFoundError(Exception):
    """An importer did not find an object.

    Example:
        >>> issubclass(torch.package.ObjNotFoundError, Exception)
        True
    """


class ObjMismatchError(Exception):
    """An importer found another object under the name.

    Example:
        >>> issubclass(torch.package.ObjMismatchError, Exception)
        True
    """


class Importer(ABC):
    """Finds modules by name, and names for objects.

    Example:
        >>> torch.package.sys_importer.import_module("math").__name__
        'math'
    """

    @property
    @abstractmethod
    def modules(self) -> dict[str, ModuleType]:
        """What has been imported."""

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of a name."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and the name under which this importer finds an object."""
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module_name = self.whichmodule(obj, name)
        plain = demangle(module_name)
        try:
            found: Any = self.import_module(plain)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {plain}.{name}") from None
        if found is obj:
            return plain, name
        theirs, ours = _origin(module_name), _origin(self.whichmodule(found, name))
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{module_name}', which is coming from {theirs}.\nHowever, when we import "
            f"'{plain}', it's coming from {ours}.\nMake sure that the exporter's importer lists the one for {theirs} "
            "first."
        )

    def whichmodule(self, obj: Any, name: str) -> str:
        """The module that an object says it is from, or the one that has it."""
        module_name = getattr(obj, "__module__", None)
        if module_name is not None:
            return str(module_name)
        for module_name, module in dict(self.modules).items():
            if module_name != "__main__" and getattr(module, name, None) is obj:
                return module_name
        return "__main__"


def _origin(module_name: str) -> str:
    return prefix_of(module_name) if is_mangled(module_name) else "the current Python environment"


class _SysImporter(Importer):
    """The environment."""

    @property
    def modules(self) -> dict[str, ModuleType]:
        return sys.modules

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(module_name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """The first of several that has what is asked for.

    Args:
        *args: the importers, in the order in which they are asked.

    Example:
        >>> torch.package.OrderedImporter(torch.package.sys_importer).import_module("math").__name__
        'math'
    """

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    @property
    def modules(self) -> dict[str, ModuleType]:
        """The modules of all importers by name; the first importer's come first."""
        return {name: module for each in reversed(self._importers) for name, module in each.modules.items()}

    def import_module(self, module_name: str) -> ModuleType:
        """The module of a name."""
        return self._first(lambda each: each.import_module(module_name), ModuleNotFoundError)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and the name under which one of them finds an object."""
        return self._first(lambda each: each.get_name(obj, name), ObjNotFoundError, ObjMismatchError)

    def _first(self, ask: Callable[[Importer], Answer], *missing: type[Exception]) -> Answer:
        """What the first answers that has one; the error of the last."""
        *others, last = self._importers
        for each in others:
            with contextlib.suppress(*missing):
                return ask(each)
        return ask(last)

    def whichmodule(self, obj: Any, name: str) -> str:
        """The module that an object says it is from."""
        return next(
            (found for each in self._importers if (found := each.whichmodule(obj, name)) != "__main__"), "__main__"
        )
