"""Scripting: what is scripted stays the Python that it is."""

from __future__ import annotations

import builtins
import typing
from typing import Any, TypeVar

from .._core.names.absent import absent_class
from ._module import ScriptModule

Object = TypeVar("Object")


CompilationUnit = absent_class("torch.jit.CompilationUnit", "TorchScript's compiler does not exist")


def script(
    obj: Object,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Object:
    """The function, class or module itself.

    >>> @flambeau.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(flambeau.tensor([1.0]))
    tensor([2.])
    """
    return obj


def script_method(fn: Object) -> Object:
    """The method itself."""
    return fn


def interface(obj: Object) -> Object:
    """The class itself."""
    return obj


def _is_script_subclass(cls: type) -> bool:
    return issubclass(cls, ScriptModule)


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, the types of a container's elements included."""
    types = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_matches(obj, each) for each in types)


def _matches(obj: Any, target: Any) -> bool:
    origin, parameters = typing.get_origin(target), typing.get_args(target)
    if target is Any:
        return True
    if target is None:
        return obj is None
    if origin is None:
        return builtins.isinstance(obj, target)
    if origin is typing.Union:
        return any(_matches(obj, each) for each in parameters)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_matches(key, parameters[0]) and _matches(value, parameters[1]) for key, value in obj.items())
    if origin is tuple and not (len(parameters) == 2 and parameters[1] is ...):
        return len(obj) == len(parameters) and all(map(_matches, obj, parameters))
    return all(_matches(each, parameters[0]) for each in obj)
