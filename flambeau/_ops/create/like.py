"""Tensors like another one: the same shape (`*_like`), or the same dtype and device (`new_*`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.geometry.layout import is_plain, strides_like
from ..._core.kind import Kind, kind_of
from ..._core.modes import THREAD
from ..._core.process.defaults import device_for
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.scalar import fitting
from ..._dispatch.public.class_dispatch import created_by_class
from ..._dispatch.public.namespaces import bound_to, written
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import explain
from ..._dispatch.public.registry import export, public
from .constants import (
    array_of_ones,
    as_dtype,
    check_options,
    checked_strides,
    fill_number,
    filled,
    filled_strided,
    made,
    requested_shape,
    tensor,
    unwritten_array,
    whole_shape,
)  # fmt: skip


def _kind_like(input: Tensor, dtype: Any, device: Any, caller: str) -> Kind:
    if not isinstance(input, Tensor):
        raise TypeError(f"{caller}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if dtype is None and device is None:
        return input._kind.plain
    return kind_of(
        input._kind.dtype if dtype is None else as_dtype(dtype, caller),
        input._kind.device if device is None else device_for(device),
    )


def filled_like(input: Tensor, kind: Kind, memory_format: Any, value: Any, requires_grad: bool) -> Tensor:
    """A tensor of `kind` with the shape and, unless a format is asked for, the layout of `input`."""
    array = input._array
    if input._is_wrapper:
        return input._filled_alike(array.shape, kind, value)
    if memory_format is None and kind.is_cpu and is_plain(array):
        return filled(array.shape, kind, value, requires_grad)
    return filled_strided(array.shape, strides_like(array, memory_format), kind, value, requires_grad)


def _like(name: str, value: Any, quick: Any, doc: str) -> Callable[..., Tensor]:
    @bound_to("")
    def function(
        namespace: Any, /, input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        try:
            if type(input) in DIRECT_TYPES:
                kind = input._kind
                if (
                    dtype is None
                    and device is None
                    and memory_format is None
                    and kind.is_cpu
                    and is_plain(input._array)
                ):
                    if THREAD.modes.interpreters:
                        return filled(input._array.shape, kind, value, requires_grad)
                    return made(quick(input._array.shape, input._array.dtype), kind, requires_grad)
            elif has_override((input,)):
                options = {
                    "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad,
                    "pin_memory": pin_memory, "memory_format": memory_format,
                }  # fmt: skip
                return run_override(function, (input,), (input,), options)
            elif (created := created_by_class(name, input, (), dtype, device)) is not None:
                return created.requires_grad_() if requires_grad else created
            kind = _kind_like(input, dtype, device, name)
            return filled_like(input, kind, memory_format, value, requires_grad)
        except MemoryError as error:
            explain(error, name, {})
            raise

    own = written(function)
    own.__name__ = own.__qualname__ = name
    own.__doc__ = doc
    export(function, name)
    return function


zeros_like = _like("zeros_like", 0, np.zeros, "Zeros with the shape, dtype and device of `input`.")
ones_like = _like("ones_like", 1, array_of_ones, "Ones with the shape, dtype and device of `input`.")
empty_like = _like(
    "empty_like", None, unwritten_array, "Uninitialised memory with the shape, dtype and device of `input`."
)


@public(method=False)
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """One value everywhere, with the shape, dtype and device of `input`."""
    if (created := created_by_class("full_like", input, (fill_value,), dtype, device)) is not None:
        return created.requires_grad_() if requires_grad else created
    kind = _kind_like(input, dtype, device, "full_like")
    number = fitting(fill_number(fill_value, "full_like"), kind.dtype)
    return filled_like(input, kind, memory_format, number, requires_grad)


def _filled_beside(input: Tensor, shape: Any, kind: Kind, value: Any, requires_grad: bool) -> Tensor:
    """A tensor as `input` has it made: a wrapper has it wrapped, too."""
    if input._is_wrapper:
        return input._filled_alike(shape, kind, value)
    return filled(shape, kind, value, requires_grad)


def _new(name: str, value: Any, doc: str) -> Callable[..., Tensor]:
    """The method that makes tensors of a given size filled with `value`; None leaves the memory as it is."""

    def make(
        input: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        shape = requested_shape(sizes, size, name)
        if (created := created_by_class(name, input, (list(shape),), dtype, device)) is not None:
            return created.requires_grad_() if requires_grad else created
        return _filled_beside(input, shape, _kind_like(input, dtype, device, name), value, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return public(function=False)(make)


new_zeros = _new("new_zeros", 0, "Zeros of the given size with the dtype and device of `input`.")
new_ones = _new("new_ones", 1, "Ones of the given size with the dtype and device of `input`.")
new_empty = _new("new_empty", None, "Uninitialised memory of the given size with the dtype and device of `input`.")


@public(function=False)
def new_full(
    input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """One value everywhere, of the given size, with the dtype and device of `input`."""
    kind = _kind_like(input, dtype, device, "new_full")
    check_options(layout, None, "new_full")
    number = fitting(fill_number(fill_value, "new_full"), kind.dtype)
    return _filled_beside(input, whole_shape(size, "new_full", 1), kind, number, requires_grad)


@public(function=False)
def new_empty_strided(
    input: Tensor, size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uninitialised memory seen with the given strides, with the dtype and device of `input`."""
    kind = _kind_like(input, dtype, device, "new_empty_strided")
    shape, strides = checked_strides(size, stride)
    if input._is_wrapper:
        return input._filled_alike(shape, kind, None)
    return filled_strided(shape, strides, kind, None, requires_grad)


@public(function=False)
def new_tensor(
    input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A copy of `data` with the dtype and device of `input`."""
    kind = _kind_like(input, dtype, device, "new_tensor")
    return tensor(data, dtype=kind.dtype, device=kind.device, requires_grad=requires_grad)
