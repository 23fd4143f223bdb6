"""The weights of TorchScript archives. Their code is not run, not even read."""

from __future__ import annotations

import pickle
import warnings
from collections import OrderedDict
from typing import Any

from .._core.tensor import Tensor
from .globals import SafeGlobals
from .limits import Budget
from .storages import Storages
from .unpickler import Machine

_SCRIPT_CLASSES = "__torch__."
_BUILDERS = "torch.jit._pickle."
_MOST_WEIGHTS = 1_000_000


class _ScriptClass:
    def __init__(self, name: str) -> None:
        self.name = name


class _ScriptObject:
    """An object of a scripted class: its attributes, and no behaviour."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}


class _Builder:
    """The functions by which TorchScript types its lists: they give back what they get."""


class _ScriptGlobals(SafeGlobals):
    def find(self, module: str, name: str) -> Any:
        if f"{module}.{name}".startswith(_SCRIPT_CLASSES):
            return _ScriptClass(name)
        if f"{module}.{name}".startswith(_BUILDERS):
            return _Builder()
        return super().find(module, name)

    def call(self, function: Any, arguments: tuple[Any, ...], budget: Budget) -> Any:
        if isinstance(function, _Builder) and arguments:
            return arguments[0]
        if isinstance(function, _ScriptClass):
            return _ScriptObject()
        return super().call(function, arguments, budget)

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], budget: Budget) -> Any:
        return _ScriptObject() if isinstance(cls, _ScriptClass) else super().create(cls, arguments, keywords, budget)

    def build(self, target: Any, state: Any, budget: Budget) -> None:
        if isinstance(target, _ScriptObject):
            if type(state) is dict and all(type(key) is str for key in state):
                target.attributes.update(state)
            return
        super().build(target, state, budget)


def _collect(module: _ScriptObject) -> OrderedDict[str, Tensor]:
    """The tensors of a module and of its parts under dotted names."""
    found: OrderedDict[str, Tensor] = OrderedDict()
    open_modules: list[tuple[str, _ScriptObject, frozenset[int]]] = [("", module, frozenset())]
    steps = 0
    while open_modules:
        prefix, current, path = open_modules.pop()
        inner = []
        for name, value in current.attributes.items():
            steps += 1
            if steps > _MOST_WEIGHTS or id(current) in path:
                raise pickle.UnpicklingError("the modules of the archive contain each other: the file is corrupt")
            if isinstance(value, Tensor):
                found[prefix + name] = value
            elif isinstance(value, _ScriptObject):
                inner.append((f"{prefix}{name}.", value, path | {id(current)}))
        open_modules.extend(reversed(inner))
    return found


def load_weights(archive: Any, storages: Storages, options: Any, budget: Budget) -> OrderedDict[str, Tensor]:
    """The parameters and buffers of a scripted module as a state dict."""
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive: its code is left alone, and its "
        "parameters and buffers are given as a state dict.",
        UserWarning,
        stacklevel=5,
    )
    machine = Machine(archive.read("data.pkl"), _ScriptGlobals(), storages.persistent_load, budget=budget)
    module = machine.load()
    if not isinstance(module, _ScriptObject):
        raise pickle.UnpicklingError("the archive does not hold a TorchScript module")
    return _collect(module)
