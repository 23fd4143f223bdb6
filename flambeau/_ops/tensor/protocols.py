"""Python's own protocols on tensors: numbers and lists, iteration, membership, formatting, copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.backend import to_host
from ..._core.dtype import INTEGER, bfloat16
from ..._core.modes import THREAD
from ..._core.pickling import deep_copy, reduce_tensor, restore_state
from ..._core.process.caller import warn_user_once
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.promotion import is_number
from ..._dispatch.host_read import elements, host_read
from ..._dispatch.op import Array
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.registry import export_method


@host_read("item")
def _item(self: Array) -> Any:
    """The one element as a Python number."""
    return self.item()


def item(input: Tensor) -> Any:
    """The one element as a Python number."""
    if type(input) not in DIRECT_TYPES:
        if has_override((input,)):
            return run_override(item, (input,), (input,), {})
        if not isinstance(input, Tensor):
            raise TypeError(f"item() is a method of tensors, not of {type(input).__name__}")
    array = input._array
    if array.size != 1:
        raise RuntimeError(
            f"a Tensor with {array.size} elements cannot be converted to Scalar: its shape is {list(array.shape)}"
        )
    kind = input._kind
    if kind.is_cpu and not kind.indirect and kind.dtype is not bfloat16 and not THREAD.modes.interpreters:
        return array.item()
    if input.is_meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")
    if THREAD.modes.interpreters or input._kind.indirect:
        value = _item(input)
    else:
        value = to_host(array).item()
    return float(value) if input._kind.dtype is bfloat16 else value


def tolist(input: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    if type(input) not in DIRECT_TYPES and has_override((input,)):
        return run_override(tolist, (input,), (input,), {})
    if input.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if input._extra is not None and input._extra.has_no_memory:
        raise RuntimeError(
            f".tolist() is not supported for tensor subclasses, got {type(input).__name__}, whose class has "
            "the elements: ask a tensor that it wraps"
        )
    array = elements(input)
    return array.astype(np.float32).tolist() if input._kind.dtype is bfloat16 else array.tolist()


def as_bool(input: Tensor) -> bool:
    """`bool(tensor)` of one element."""
    if input._array.size != 1:
        what = "no values" if input._array.size == 0 else "more than one value"
        raise RuntimeError(
            f"Boolean value of Tensor with {what} is ambiguous: its shape is {list(input._array.shape)}. "
            "Use .any() or .all(), or compare one element."
        )
    return bool(input.item())


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
    if input.requires_grad and THREAD.modes.grad:
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


def iterate(input: Tensor) -> Iterator[Tensor]:
    """The tensors along the first dimension."""
    if input.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(input.unbind(0))


def contains(input: Any, element: Any) -> bool:
    """`element in tensor`: whether any element is equal to it."""
    if isinstance(element, Tensor) or is_number(element):
        return bool((element == input).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def in_reverse(input: Tensor) -> Tensor:
    """`reversed(tensor)`: along the first dimension."""
    return input if input._array.ndim == 0 else input.flip(0)


def formatted(input: Tensor, specification: str) -> str:
    """`format(tensor, ...)`: a 0-d tensor as its number."""
    if input._array.ndim == 0 and not input._kind.dataless and type(input) is Tensor:
        return format(input.item(), specification)
    return object.__format__(input, specification)


def directory(input: Tensor) -> list[str]:
    """The names for `dir(tensor)`."""
    return sorted({*dir(type(input)), *vars(input)})


export_method(item, "item")
export_method(tolist, "tolist")
export_method(as_bool, "__bool__")
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
