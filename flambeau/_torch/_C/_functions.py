"""The classes of nodes, under the names of `torch._C._functions`: what `isinstance(tensor.grad_fn, ...)` asks.

Several ops of this package may record nodes of one name, so a class here is known by its name alone.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from flambeau._core.node import Node

_NAME = re.compile(
    r"[A-Z]\w*(Backward|Copy)\d*|AccumulateGrad|CopySlices|CopyBackwards|Error|DelayedError|UndefinedGrad"
)


class _NodeClass(type(Node)):  # type: ignore[misc]  # mypy wants a class by name
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Node) and type(instance).__name__ == cls.__name__

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, Node) and subclass.__name__ == cls.__name__


@functools.cache
def _class_named(name: str) -> type:
    return _NodeClass(name, (Node,), {"__slots__": (), "__module__": __name__})


def __getattr__(name: str) -> Any:
    if _NAME.fullmatch(name) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class_named(name)
