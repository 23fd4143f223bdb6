"""Modules that another library implements behind an interface like that of PyTorch's C++ modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .modules.module import Module

__all__ = ["ModuleWrapper", "OrderedDictWrapper"]


class OrderedDictWrapper:
    """A dictionary that a foreign module gives by a method, read anew at each use."""

    def __init__(self, cpp_module: Any, attr: str) -> None:
        self.cpp_module = cpp_module
        self.attr = attr

    @property
    def cpp_dict(self) -> Any:
        """What the module gives now."""
        return getattr(self.cpp_module, self.attr)

    def items(self) -> Any:
        """Names and values."""
        return self.cpp_dict.items()

    def keys(self) -> Any:
        """The names."""
        return self.cpp_dict.keys()

    def values(self) -> Any:
        """The values."""
        return self.cpp_dict.values()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cpp_dict)

    def __len__(self) -> int:
        return len(self.cpp_dict)

    def __contains__(self, key: str) -> bool:
        return key in self.cpp_dict

    def __getitem__(self, key: str) -> Any:
        return self.cpp_dict[key]


class ModuleWrapper(Module):
    """A foreign module as one of this package: what it is asked for it asks the foreign one for."""

    def __init__(self, cpp_module: Any) -> None:
        self.cpp_module = cpp_module
        super().__init__()
        for name in ("_parameters", "_buffers", "_modules"):
            vars(self)[name] = OrderedDictWrapper(cpp_module, name)
        for name in dir(cpp_module):
            if not name.startswith("_"):
                setattr(self, name, getattr(cpp_module, name))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        for param in self.parameters():
            param.data = fn(param.data)
            if param.grad is not None:
                param.grad.data = fn(param.grad.data)
        for buffer in self.buffers():
            buffer.data = fn(buffer.data)
        return self

    def __repr__(self) -> str:
        return repr(self.cpp_module)


def _is_training(module: Any) -> bool:
    """Whether the foreign module is in training mode."""
    return bool(module.cpp_module.training)


def _train(module: Any, mode: bool) -> None:
    module.cpp_module.train(mode)


setattr(ModuleWrapper, "training", property(_is_training, _train))  # noqa: B010 (an attribute of every other module)
