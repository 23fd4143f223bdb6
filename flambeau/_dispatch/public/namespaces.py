"""Namespaces, to which public functions are bound: a class whose attribute such a function is does not bind it again.

    class Layer:
        compute = flambeau.conv2d

    Layer().compute(x, weight)  # conv2d(x, weight), as with PyTorch's compiled functions

A bound method is the one callable that Python calls as quickly as a function and that does not become a method. So the
functions that PyTorch has compiled are methods of a `Namespace`, which their first parameter takes and nobody reads.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar

Function = Callable[..., Any]
P = ParamSpec("P")
Result = TypeVar("Result")

HOME = ["flambeau"]
"""The package in which public functions say that they stand."""


class Namespace:
    """What public functions are bound to; a pickle of one says which module to import."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return ".".join(filter(None, (HOME[0], self.path)))

    def __getattr__(self, name: str) -> Any:  # copies of functions look for them here
        return getattr(importlib.import_module(repr(self)), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (repr(self),)

    def __copy__(self) -> Namespace:
        return self

    def __deepcopy__(self, memo: Any) -> Namespace:
        return self


@functools.cache
def namespace_at(path: str) -> Namespace:
    """The namespace of a module, whose path has no package: '' is the package itself."""
    return Namespace(path)


def bound_to(path: str) -> Callable[[Callable[Concatenate[Any, P], Result]], Callable[P, Result]]:
    """Bind the decorated function, whose first parameter is for that, to the namespace at `path`."""
    return lambda function: MethodType(function, namespace_at(path))


def is_unbound(function: Any) -> bool:
    """Whether a callable is a function that is bound to its namespace alone."""
    return type(function) is MethodType and type(function.__self__) is Namespace


def written(function: Any) -> Any:
    """The Python function behind a public one, to which attributes can be given."""
    return function.__func__ if is_unbound(function) else function
