"""softmax and log_softmax by generated kernels, along any dimension; cosines along the last.

Functions take arrays and give arrays, or None where no kernel fits: other dtypes, arrays without elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._codegen.row_program import RowProgram
from ...._codegen.rows import programs
from ...._codegen.rows.in_lanes import rows_in_lanes
from ...._codegen.rows.in_tiles import rows_in_tiles
from ...._codegen.rows.one_by_one import rows_one_by_one
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..elementwise.copy import contiguous
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import name_of_type

Array = Any

_SHORT = 32
_SEVERAL = 8


def is_short(rows: int, length: int) -> bool:
    """Whether rows are put into the lanes of vectors side by side: they are short, and there are several.

    Not where a row has to give the same bits among many as alone.
    """
    return length < _SHORT and rows >= _SEVERAL and REPRODUCIBILITY.product is None


@functools.lru_cache(maxsize=1024)
def _plan(
    dtype: np.dtype[Any], shape: tuple[int, ...], dim: int, logarithm: bool, backward: bool, level: str | None
) -> tuple[Any, tuple[int, ...]] | None:
    """The kernel that fits at a level of `reproducible`, and the sizes that it is told; None: there is none."""
    name = name_of_type(dtype)
    if name is None or not shape or 0 in shape:
        return None
    length = shape[dim]
    rows = math.prod(shape) // length
    inner = math.prod(shape[dim + 1 :])
    program = (programs.softmax_backward if backward else programs.softmax)(name, logarithm, "float64")
    return _kernel_along(program, rows, length, inner)


def _kernel_along(program: RowProgram, rows: int, length: int, inner: int) -> tuple[Any, tuple[int, ...]]:
    """The kernel for rows of a program whose elements are `inner` apart from each other, and the sizes it is told."""
    if inner > 1:
        return rows_in_tiles(program), (rows // inner, length, inner)
    return (rows_in_lanes if is_short(rows, length) else rows_one_by_one)(program), (rows, length)


def _forward(logarithm: bool) -> Callable[..., Array | None]:
    def run(x: Array, dim: int, workspace: Workspace = DIRECT) -> Array | None:
        shape, dtype = x.shape, x.dtype
        plan = _plan(dtype, shape, dim, logarithm, False, REPRODUCIBILITY.level)
        if plan is None:
            return None
        kernel, sizes = plan
        source = x if x.flags.c_contiguous else contiguous(x)
        return workspace.run(kernel, workspace.empty(shape, dtype), source, *sizes)

    return run


def _backward(logarithm: bool) -> Callable[..., Array | None]:
    def run(grad: Array, result: Array, dim: int, workspace: Workspace = DIRECT) -> Array | None:
        shape, dtype = grad.shape, grad.dtype
        plan = _plan(dtype, shape, dim, logarithm, True, REPRODUCIBILITY.level)
        if plan is None or result.dtype is not dtype or result.shape != shape:
            return None
        kernel, sizes = plan
        first = contiguous(grad)
        second = contiguous(result)
        return workspace.run(kernel, workspace.empty(shape, dtype), first, second, *sizes)

    return run


softmax, log_softmax = _forward(False), _forward(True)
"""(x, dim): exponentials divided by their sum along a dimension, and the logarithm of that."""
softmax_backward, log_softmax_backward = _backward(False), _backward(True)
"""(grad, result, dim): the gradient of their input."""


@functools.lru_cache(maxsize=1024)
def _logsumexp_plan(
    dtype: np.dtype[Any], shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool, level: str | None
) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    """The kernel that fits at a level of `reproducible`, the sizes that it is told, and the shape of the result."""
    name = name_of_type(dtype)
    first, last = min(dims, default=0), max(dims, default=-1)
    if name is None or not shape or 0 in shape or len(dims) != last - first + 1:
        return None
    length, inner = math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])
    program = programs.logsumexp(name, "float64")
    kept = shape[:first] + (1,) * len(dims) * keepdim + shape[last + 1 :]
    return *_kernel_along(program, math.prod(shape) // length, length, inner), kept


def logsumexp(x: Array, dims: tuple[int, ...], keepdim: bool) -> Array | None:
    """Logarithms of sums of exponentials along neighbouring dimensions."""
    plan = _logsumexp_plan(x.dtype, x.shape, dims, keepdim, REPRODUCIBILITY.level)
    if plan is None:
        return None
    kernel, sizes, shape = plan
    return kernel(np.empty(shape, x.dtype), contiguous(x), *sizes)


@functools.lru_cache(maxsize=1024)
def _cosine_plan(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[Any, tuple[int, int]] | None:
    name = name_of_type(dtype)
    if name not in ("float32", "float64") or not shape or 0 in shape:
        return None
    rows, length = math.prod(shape[:-1]), shape[-1]
    program = programs.cosine(name, "float64")
    return (rows_in_lanes if is_short(rows, length) else rows_one_by_one)(program), (rows, length)


def cosine(x: Array, y: Array, dim: int, eps: float) -> Array | None:
    """The cosines of the angles between the rows of two arrays, of which lengths below `eps` count as `eps`."""
    plan = _cosine_plan(x.dtype, x.shape)
    if plan is None or dim not in (-1, x.ndim - 1) or y.shape != x.shape or y.dtype is not x.dtype:
        return None
    kernel, sizes = plan
    first, second = contiguous(x), contiguous(y)
    return kernel(np.empty(x.shape[:-1], x.dtype), first, second, eps, *sizes)


def safe_softmax(x: Array, dim: int) -> Array | None:
    """`softmax`, but zeros where all elements along `dim` are -inf: of such rows it makes NaN."""
    result = softmax(x, dim)
    if result is not None and np.isnan(np.add.reduce(result, None)):
        np.copyto(result, 0, where=np.maximum.reduce(x, axis=dim, keepdims=True) == -math.inf)
    return result
