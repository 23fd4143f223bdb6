"""What users say about functions and tensors, and whether code runs inside a compiled call.

The whole compiler reads these marks, and this file imports nothing of it.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload


class HasForward(Protocol):
    """A module, of which the compiler knows no more: type checkers do not take its `__call__` for that of a "
    "callable."""

    @property
    def forward(self) -> Callable[..., Any]: ...


Model = TypeVar("Model", bound=Callable[..., Any] | HasForward)
"""A function or a module: what `compile` returns is called as it is, and has its attributes."""

COMPILED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Every compiled function that there is."""

_DYNAMIC: dict[int, weakref.ref[Any]] = {}
"""Tensors whose sizes somebody has said to change, by their addresses."""

DISABLED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The code of functions that are not to be compiled."""

TRUSTED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The code of functions of which somebody has said that only their ops and results matter."""


def trust(function: Any) -> None:
    """Take it that a function does nothing but its ops, and gives the same for the same arguments."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None:
        TRUSTED.add(code)


def reset() -> None:
    """Forget what was compiled.

    Example:
        >>> torch.compiler.reset()
    """
    for each in list(COMPILED):
        each.forget()


class _Inside(threading.local):
    """How many calls of compiled functions this thread is in."""

    def __init__(self) -> None:
        self.count = [0]
        """A list, so that one look-up by thread is enough to change it."""

    @property
    def calls(self) -> int:
        """How many they are."""
        return self.count[0]


_INSIDE = _Inside()


def run_inside(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call Python of a compiled function, which knows by `is_compiling` that it is."""
    count = _INSIDE.count
    count[0] += 1
    try:
        return function(*args, **kwargs)
    finally:
        count[0] -= 1


def is_compiling() -> bool:
    """Whether this code is part of a compiled function: in every call of it, so that all do the same.

    >>> flambeau.compile(lambda x: x + flambeau.compiler.is_compiling())(flambeau.tensor(1))
    tensor(2)
    >>> flambeau.compiler.is_compiling()
    False

    Returns:
        bool: whether it is.
    """
    if not _INSIDE.count[0]:
        return False
    frame = sys._getframe(1)
    while frame.f_code is not run_inside.__code__:
        if frame.f_code in DISABLED or frame.f_back is None:
            return False
        frame = frame.f_back
    return True


@overload
def disable(fn: Model, recursive: bool = True, *, reason: str | None = None) -> Model: ...


@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[Model], Model]: ...


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function as one that is not to be compiled; with and without parentheses.

    Args:
        fn: the function; None returns a decorator.
        recursive (bool): whether what it calls is not compiled either. Default: `True`.
        reason (str, optional): why, as explanations show it.

    Returns:
        the function, or a decorator.

    Example:
        >>> @torch.compiler.disable
        ... def log(x):
        ...     print(x.shape)
        >>> log(torch.ones(2))
        torch.Size([2])
    """
    if fn is None:
        return disable
    code = getattr(inspect.unwrap(getattr(fn, "forward", fn)), "__code__", None)
    if code is not None:
        DISABLED.add(code)
    return fn


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Say that the sizes of a tensor change from call to call: what takes it is compiled for all sizes at once."""
    _DYNAMIC[id(t)] = weakref.ref(t)


def is_marked_dynamic(value: Any) -> bool:
    """Whether something is a tensor of which that has been said."""
    known = _DYNAMIC.get(id(value))
    return known is not None and known() is value
