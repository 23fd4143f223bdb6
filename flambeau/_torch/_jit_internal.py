"""Marks and helpers for TorchScript, under the names of `torch._jit_internal`."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any, Dict, Final, Generic, List, Optional, Tuple, TypeVar, Union  # noqa: UP035

from flambeau.futures import Future
from flambeau.jit._trace import is_tracing
from flambeau.jit.annotations import Attribute, export, ignore, is_scripting, unused

__all__ = [
    "Attribute", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "Future", "List",
    "Optional", "Tuple", "Union", "boolean_dispatch", "export", "ignore", "is_scripting", "is_tracing", "unused",
]  # fmt: skip

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])


class _BroadcastingList(Generic[Item]):
    """A number, or a list of as many: written `BroadcastingList2[int]` in signatures."""

    def __class_getitem__(cls, types: Any) -> Any:
        return list


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _BroadcastingList


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that is one of two, by the truth of an argument."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatch.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name:
        dispatch.__module__ = module_name
    dispatch.__name__ = func_name
    return dispatch


_OVERLOADS: dict[str, list[Callable[..., Any]]] = {}


def _overload(func: Function) -> Function:
    """Note one of a function's signatures."""
    _OVERLOADS.setdefault(f"{func.__module__}.{func.__qualname__}", []).append(func)
    return func


_overload_method = _overload


def _copy_to_script_wrapper(fn: Function) -> Function:
    """Mark a method that compiled modules are to have as well."""
    # PyTorch marks functions by an attribute
    fn._torchscript_modifier = "if this method is not scripted, copy the python method onto the scripted model"  # type: ignore[attr-defined]
    return fn


class _IgnoreContextManager:
    """A block that is to stay Python."""

    def __init__(self, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def is_optional(annotation: Any) -> bool:
    """Whether a type is `Optional[...]`."""
    return typing.get_origin(annotation) is typing.Union and type(None) in typing.get_args(annotation)


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function is marked to stay Python."""
    return "ignore" in getattr(fn, "_torchscript_modifier", "") or "unused" in getattr(fn, "_torchscript_modifier", "")
