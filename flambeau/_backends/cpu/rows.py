"""softmax and log_softmax by generated kernels, along any dimension.

Functions take arrays and give arrays, or None where no kernel fits: other dtypes, arrays without elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._codegen.softmax import (
    softmax_columns,
    softmax_columns_backward,
    softmax_rows,
    softmax_rows_backward,
    softmax_short_rows,
    softmax_short_rows_backward,
)
from .dtypes import name_of_type

Array = Any

SHORT = 32
"""Rows below this length are put into the lanes of vectors side by side."""
SEVERAL = 8
"""If there are so many of them."""


_KERNELS = (
    (softmax_rows, softmax_rows_backward),
    (softmax_columns, softmax_columns_backward),
    (softmax_short_rows, softmax_short_rows_backward),
)

_made: dict[Any, Any] = {}
"""Kernels by the dtype and the form of their arrays: found with one look."""


def _form(shape: tuple[int, ...], size: int, dim: int) -> tuple[int, tuple[int, ...]]:
    """Which kernels fit, as in `_KERNELS`, and the sizes that they are told."""
    length = shape[dim]
    rows = size // length
    if dim != len(shape) - 1:
        inner = math.prod(shape[dim + 1 :])
        if inner > 1:
            return 1, (rows // inner, length, inner)
    return 2 if length < SHORT and rows >= SEVERAL else 0, (rows, length)


def _make(dtype: np.dtype[Any], form: int, logarithm: bool, backward: bool) -> Any:
    name = name_of_type(dtype)
    if name is None:
        return None
    made = _made[dtype, form, logarithm, backward] = _KERNELS[form][backward](name, logarithm)
    return made


def _forward(logarithm: bool) -> Callable[[Array, int], Array | None]:
    def run(x: Array, dim: int) -> Array | None:
        size, shape, dtype = x.size, x.shape, x.dtype
        if not size or not shape:
            return None
        form, sizes = _form(shape, size, dim)
        kernel = _made.get((dtype, form, logarithm, False)) or _make(dtype, form, logarithm, False)
        if kernel is None:
            return None
        return kernel(np.empty(shape, dtype), x if x.flags.c_contiguous else np.ascontiguousarray(x), *sizes)

    return run


def _backward(logarithm: bool) -> Callable[[Array, Array, int], Array | None]:
    def run(grad: Array, result: Array, dim: int) -> Array | None:
        size, shape, dtype = grad.size, grad.shape, grad.dtype
        if not size or not shape or result.dtype is not dtype or result.shape != shape:
            return None
        form, sizes = _form(shape, size, dim)
        kernel = _made.get((dtype, form, logarithm, True)) or _make(dtype, form, logarithm, True)
        if kernel is None:
            return None
        first = grad if grad.flags.c_contiguous else np.ascontiguousarray(grad)
        second = result if result.flags.c_contiguous else np.ascontiguousarray(result)
        return kernel(np.empty(shape, dtype), first, second, *sizes)

    return run


softmax, log_softmax = _forward(False), _forward(True)
"""(x, dim): exponentials divided by their sum along a dimension, and the logarithm of that."""
softmax_backward, log_softmax_backward = _backward(False), _backward(True)
"""(grad, result, dim): the gradient of their input."""
