"""Python's own protocols on tensors: numbers, iteration, membership, formatting, copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._core.dtype import INTEGER
from ..._core.pickling import deep_copy, reduce_tensor, restore_state
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._dispatch.promotion import is_number
from ..._dispatch.registry import export_method


def _number(input: Tensor) -> Any:
    if input._array.size != 1:
        raise ValueError(
            f"only one element tensors can be converted to Python scalars: the shape is {list(input._array.shape)}"
        )
    return input.item()


def as_int(input: Tensor) -> int:
    """`int(tensor)`: towards zero."""
    value = _number(input)
    if isinstance(value, complex):
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to type int64_t without overflow: {value} is complex")
        value = value.real
    return int(value)


def _warn_of_lost_gradients(input: Tensor) -> None:
    if input.requires_grad:
        warn_user_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior: no gradient goes "
            "through the number. Consider using tensor.detach() first."
        )


def as_float(input: Tensor) -> float:
    """`float(tensor)`."""
    _warn_of_lost_gradients(input)
    value = _number(input)
    if isinstance(value, complex):
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to type double without overflow: {value} is complex")
        value = value.real
    return float(value)


def as_complex(input: Tensor) -> complex:
    """`complex(tensor)`."""
    _warn_of_lost_gradients(input)
    return complex(_number(input))


def as_index(input: Tensor) -> int:
    """The tensor as an index or a size."""
    if input._array.size != 1 or input._kind.dtype.category > INTEGER:
        raise TypeError(
            "only integer tensors of a single element can be converted to an index: this one is "
            f"{input.dtype} of shape {list(input._array.shape)}"
        )
    return int(input.item())


def iterate(input: Any) -> Iterator[Tensor]:
    """The tensors along the first dimension."""
    if input._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(input.unbind(0))


def contains(input: Any, element: Any) -> bool:
    """`element in tensor`: whether any element is equal to it."""
    if isinstance(element, Tensor) or is_number(element):
        return bool((element == input).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def in_reverse(input: Any) -> Any:
    """`reversed(tensor)`: along the first dimension."""
    return input if input._array.ndim == 0 else input.flip(0)


def formatted(input: Tensor, specification: str) -> str:
    """`format(tensor, ...)`: a 0-d tensor as its number."""
    if input._array.ndim == 0 and not input.is_meta and type(input) is Tensor:
        return format(input.item(), specification)
    return object.__format__(input, specification)


def directory(input: Tensor) -> list[str]:
    """The names for `dir(tensor)`."""
    return sorted({*dir(type(input)), *vars(input)})


export_method(as_int, "__int__")
export_method(as_float, "__float__")
export_method(as_complex, "__complex__")
export_method(as_index, "__index__")
export_method(iterate, "__iter__")
export_method(contains, "__contains__")
export_method(in_reverse, "__reversed__")
export_method(formatted, "__format__")
export_method(directory, "__dir__")
export_method(deep_copy, "__deepcopy__")
export_method(reduce_tensor, "__reduce_ex__")
export_method(restore_state, "__setstate__")
