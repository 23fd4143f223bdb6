"""Types and marks for TorchScript: Python only keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, Final, List, NamedTuple, Tuple, TypeVar  # noqa: UP035  (the names that programs import)

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere(
        "ann_to_type check_fn get_param_names get_signature get_type_line is_dict is_list is_optional is_tuple "
        "is_union parse_type_line split_type_line try_ann_to_type try_real_annotations",
        "jit._annotated",
    )
    .elsewhere("AnyType ComplexType DictType FloatType IntType ListType StringType TensorType TupleType", "jit._types")
    .parts()
)
__all__ = [
    "Any",
    "Attribute",
    "Dict",
    "Final",
    "List",
    "Tuple",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")


class _BroadcastingList:
    """The type of a list for which one number stands too: `BroadcastingList2[int]`."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()


class Attribute(NamedTuple):
    """A value with the type that TorchScript is to give it.

    Args:
        value: the value.
        type: its type.

    Example:
        >>> torch.jit.Attribute(0.1, float).value
        0.1
    """

    value: Any
    type: Any


def annotate(the_type: Any, the_value: Value) -> Value:
    """The value; the type is for the compiler.

    Args:
        the_type: the type.
        the_value (Value): the value.

    Returns:
        the value.

    Example:
        >>> torch.jit.annotate(list[int], [])
        []
    """
    return the_value


def is_scripting() -> bool:
    """Whether this code is being compiled: never, it is Python.

    Returns:
        bool: False.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return False


def export(fn: Function) -> Function:
    """Mark a method as an entry point of the compiled module.

    Args:
        fn (Function): the method.

    Returns:
        the method.

    Example:
        >>> class Layer(torch.nn.Module):
        ...     @torch.jit.export
        ...     def encode(self, x: torch.Tensor) -> torch.Tensor:
        ...         return x + 1
        >>> torch.jit.script(Layer()).encode(torch.ones(1))
        tensor([2.])
    """
    # PyTorch marks functions by an attribute
    fn._torchscript_modifier = "export (compile this function even if nothing calls it)"  # type: ignore[attr-defined]
    return fn


def unused(fn: Any) -> Any:
    """Mark a function as one that compiled code never calls.

    Args:
        fn: the function.

    Returns:
        the function.

    Example:
        >>> @torch.jit.unused
        ... def debug(x):
        ...     return x
        >>> debug(1)
        1
    """
    target: Any = fn.fget if isinstance(fn, property) else fn
    target._torchscript_modifier = "unused (ignore and replace with raising of an exception)"
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function as one that is to stay Python; with and without parentheses.

    Args:
        drop: whether a call in a saved program raises; or the function. Default: `False`.
        **kwargs: not used.

    Returns:
        the function, or a decorator.

    Example:
        >>> @torch.jit.ignore
        ... def log(x):
        ...     print(x.shape)
        >>> log(torch.ones(2))
        torch.Size([2])
    """
    if callable(drop):
        drop._torchscript_modifier = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")

    def decorate(fn: Function) -> Function:
        marked: Function = unused(fn) if drop else ignore(fn)
        return marked

    return decorate
