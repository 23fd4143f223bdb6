"""What functions and types are called in generated code: as PyTorch calls them, from `torch` on."""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from .._dispatch.public.places import (
    COMPILED_SPACES,
    OF_FUNCTIONAL,
    OPERATORS,
    WRITTEN_IN_PYTHON,
    is_only_method,
    space_of,
)

_OTHER_LAST_NAMES = {"logsigmoid": "log_sigmoid", "threshold": "_threshold"}


def in_torch(module: str) -> str:
    """A module's name as PyTorch's programs say it."""
    package, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if package == "flambeau" else module


def is_from_torch(obj: Any) -> bool:
    """Whether generated code reaches an object from `torch`."""
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("flambeau", "torch")


def own_name(function: Any) -> str:
    """The last part of a function's name in PyTorch."""
    name: str = function.__name__
    if space_of(function) is None:
        return name
    return OPERATORS.get(name) or _OTHER_LAST_NAMES.get(name, name)


def qualified_name(function: Callable[..., Any]) -> str:
    """The full name of a function: `torch.nn.functional.relu`, `torch.ops.aten.add.Tensor`, `len`."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    if is_only_method(function):
        return f"torch.Tensor.{own_name(function)}"
    if name == "<lambda>":
        name = _name_of_lambda(function)
    space = space_of(function)
    if space == "" and name in WRITTEN_IN_PYTHON:
        return f"torch.functional.{name}"
    if space == "nn.functional" and name in OF_FUNCTIONAL:
        return f"{OF_FUNCTIONAL[name]}.{own_name(function)}"
    if space in COMPILED_SPACES:
        return f"torch._C._{space}.{name}"
    if space in ("", "nn.functional"):
        return ".".join(filter(None, ("torch", space, own_name(function) if space else name)))
    module = in_torch(function.__module__).replace("torch._ops", "torch.ops")
    return f"{module}.{name}"


def _name_of_lambda(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except Exception as error:
        raise RuntimeError("Unable to represent lambda") from error


def type_text(obj: Any) -> str:
    """A type as an annotation writes it."""
    if isinstance(obj, type) and typing.get_origin(obj) is None:
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{in_torch(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def target_text(target: Any) -> str:
    """A node's target for people: `operator.add`, `builtins.getattr`, `torch.add`; methods and modules by name."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    if module == "builtins":
        return f"builtins.{target.__name__}"
    if module == "_operator":
        return f"operator.{target.__name__}"
    return qualified_name(target)
