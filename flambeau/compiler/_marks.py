"""What users say about functions and tensors, and whether code runs inside a compiled call.

The whole compiler reads these marks, and this file imports nothing of it.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
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

_DYNAMIC: dict[int, tuple[weakref.ref[Any], dict[int, tuple[int | None, int | None]]]] = {}
"""Tensors whose sizes somebody has said to change, by their addresses, and the least and most size of dimensions."""

DISABLED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The code of functions that are not to be compiled."""

FORBIDDEN: weakref.WeakSet[Any] = weakref.WeakSet()
"""The code of functions that must not run in a compiled call: that is an error."""

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
        self.exports = 0
        """How many exports this thread is in."""

    @property
    def calls(self) -> int:
        """How many calls of compiled functions run now."""
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


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """A context in which code is run to be exported, which it can ask for by `is_exporting`."""
    _INSIDE.exports += 1
    try:
        yield
    finally:
        _INSIDE.exports -= 1


def is_exporting() -> bool:
    """Whether this code runs in `torch.export.export`: libraries leave out then what no graph can hold.

    Returns:
        bool: whether it does.

    Example:
        >>> torch.compiler.is_exporting()
        False
    """
    return _INSIDE.exports > 0


def is_compiling() -> bool:
    """Whether this code is part of a compiled function, in every call of it, so that all do the same, or is exported.

    >>> flambeau.compile(lambda x: x + flambeau.compiler.is_compiling())(flambeau.tensor(1))
    tensor(2)
    >>> flambeau.compiler.is_compiling()
    False

    Returns:
        bool: whether it is.
    """
    if _INSIDE.exports:
        return True
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


def forbid_in_graph(fn: Any) -> Any:
    """Mark a function, or several, that must not run in a compiled call: such a call is an AssertionError."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    code = getattr(inspect.unwrap(getattr(fn, "forward", fn)), "__code__", None)
    if code is not None:
        FORBIDDEN.add(code)
    return fn


class _Breaks(threading.local):
    """Whether a graph break is an error in this thread now."""

    are_errors = False


BREAKS = _Breaks()


class error_on_graph_break(contextlib.ContextDecorator):
    """A context, or a decorator, in which a graph break is an error, or is none inside one in which it is.

    `fullgraph=True` counts for more. What has been split at its graph breaks before runs in parts without an error.
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        self._are_errors = error_on_graph_break
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(BREAKS.are_errors)
        BREAKS.are_errors = self._are_errors

    def __exit__(self, *exception: object) -> None:
        BREAKS.are_errors = self._before.pop()


def mark_dynamic(
    t: Any,
    index: Any,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Any = None,
) -> None:
    """Say that the sizes of a tensor change from call to call: what takes it is compiled for all sizes at once.

    `min` and `max` say between which sizes: a compiled function that is given another is an error when it is compiled.
    """
    ranges = _DYNAMIC[id(t)][1] if is_marked_dynamic(t) else {}
    for each in index if isinstance(index, (list, tuple)) else [index]:
        ranges[each] = (min, max)
    _DYNAMIC[id(t)] = weakref.ref(t), ranges


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Say that the sizes of a tensor may change from call to call."""
    mark_dynamic(t, index)


def size_out_of_range(t: Any) -> str | None:
    """What is wrong with the sizes of a tensor that was marked."""
    for index, (least, most) in _DYNAMIC[id(t)][1].items():
        size = t.shape[index] if least is not None or most is not None else None
        if size is not None and not (least or 0) <= size <= (size if most is None else most):
            return f"{size} not in range [{least or 0}, {'int_oo' if most is None else most}]"
    return None


def is_marked_dynamic(value: Any) -> bool:
    """Whether something is a tensor of which that has been said."""
    known = _DYNAMIC.get(id(value))
    return known is not None and known[0]() is value
