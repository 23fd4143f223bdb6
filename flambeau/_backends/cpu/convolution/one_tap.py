"""Convolutions by windows of one element: products of matrices on the images as they lie, by NumPy's library.

The vendor's kernels bring images, weights and results into blocks and back, which takes two to four times as long as
the products themselves. The functions have the names and arguments of those in `_ops/nn/conv_kernels.py`, and return
None for what is left to others. The parts of the work follow from the shapes alone, and so do the bits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...._core.geometry.moving_windows import Geometry, Shape
from ...tiers import compiles
from ..elementwise.pointwise import increased
from ..linalg.threaded_blas import Plan, plan_of
from ..memory.workspace import DIRECT, Workspace
from .tiers import FEW_POSITIONS

Array = Any

_SINGLE = np.dtype(np.float32)
_ITEM = 4
_LONG, _SMALL = 1024, 100**3
_PIECE = 512
"""So many positions of an image are summed up one by one at most."""
_CHUNKS = 16
"""So many sums of samples, at most, are computed for themselves."""
_MANY = 1 << 16


def correlate(
    input: Array, weight: Array, bias: Array | None, output: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The convolution of `input` with `weight`, plus `bias`."""
    if last or input.shape[2:] != output or not _fits(input, weight, geometry):
        return None
    plan = _correlation(input.shape, input.strides, weight.shape, weight.strides)
    return None if plan is None else _product(plan, weight, input, weight.shape[0], bias, workspace)


def correlate_transposed(
    grad: Array, weight: Array, bias: Array | None, sizes: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The transpose of `correlate` with respect to its input, plus `bias`."""
    if last or grad.shape[2:] != sizes or not _fits(grad, weight, geometry):
        return None
    shape, strides = weight.shape, weight.strides
    turned = (shape[1], shape[0], *shape[2:]), (strides[1], strides[0], *strides[2:])
    plan = _correlation(grad.shape, grad.strides, *turned)
    return None if plan is None else _product(plan, weight, grad, shape[1], bias, workspace)


def weight_gradient(
    input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Array | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    if last or input.shape[2:] != grad.shape[2:] or set(kernel) != {1} or not _fits(input, grad, geometry):
        return None
    plan = _weighing(input.shape, input.strides, grad.shape, grad.strides)
    if plan is None:
        return None
    sums = workspace.run(plan.kernel, workspace.empty(plan.shape, _SINGLE), grad, input, plan.table)
    total, *others = sums
    for each in others:
        np.add(total, each, total)
    return total.reshape(*total.shape, *kernel)


def _fits(one: Array, other: Array, geometry: Geometry) -> bool:
    """Whether both are of float32 and windows move in steps of 1 over images without padding."""
    stride, padding, _, groups = geometry
    if groups != 1 or max(stride) > 1 or any(padding) or not one.dtype == other.dtype == _SINGLE:
        return False
    return bool(one.flags.aligned and other.flags.aligned)


def _product(
    plan: Plan, weight: Array, images: Array, channels: int, bias: Array | None, workspace: Workspace
) -> Array:
    result = workspace.empty((images.shape[0], channels, *images.shape[2:]), _SINGLE)
    workspace.run(plan.kernel, result, weight, images, plan.table)
    if bias is not None:
        addend = bias.reshape(-1, *(1,) * (result.ndim - 2))
        if workspace is not DIRECT or result.size < _MANY or not increased(result, addend):
            result += addend
    return result


@functools.lru_cache(maxsize=512)
def _correlation(shape: Shape, strides: Shape, weight: Shape, weight_strides: Shape) -> Plan | None:
    """The product of a matrix of weights with each image; None: it is left to others."""
    planes = _matrices(shape, strides)
    if not compiles() or planes is None or set(weight[2:]) != {1} or shape[1] != weight[1]:
        return None
    if _is_summed_one_by_one(weight[0], weight[1], planes[0][2]):
        return None
    return plan_of(_SINGLE, weight[:2], weight_strides[:2], *planes)


@functools.lru_cache(maxsize=512)
def _weighing(shape: Shape, strides: Shape, grad: Shape, grad_strides: Shape) -> Plan | None:
    """The sums over samples, in chunks, of the products of gradients with images, turned."""
    left, right = _matrices(grad, grad_strides), _matrices(shape, strides)
    if not compiles() or left is None or right is None:
        return None
    (samples, channels, count), outputs = right[0], grad[1]
    if count <= FEW_POSITIONS:
        return None
    each = -(-samples // _CHUNKS)
    if _is_summed_one_by_one(outputs, count, channels):
        each = next((pieces for pieces in range(-(-count // _PIECE), count // FEW_POSITIONS) if count % pieces == 0), 0)
        if not each:
            return None
        left, right = _in_pieces(*left, each), _in_pieces(*right, each)
    return plan_of(_SINGLE, *left, *_turned(*right), summed=each)


def _is_summed_one_by_one(rows: int, length: int, columns: int) -> bool:
    """Whether the library has a kernel for so small a product that adds up a long row without an intermediate sum."""
    return length >= _LONG and rows * length * columns <= _SMALL


def _matrices(shape: Shape, strides: Shape) -> tuple[Shape, Shape] | None:
    """Images as matrices, with a row for each channel; None: their rows do not lie one after another."""
    count = 1
    for size, step in zip(shape[:1:-1], strides[:1:-1], strict=True):
        if size > 1 and step != count * _ITEM:
            return None
        count *= size
    return (*shape[:2], count), (*strides[:2], _ITEM)


def _in_pieces(shape: Shape, strides: Shape, pieces: int) -> tuple[Shape, Shape]:
    """Matrices of images, the rows of which are cut into pieces: (samples, pieces, channels, positions of one)."""
    samples, channels, count = shape
    size = count // pieces
    return (samples, pieces, channels, size), (strides[0], size * _ITEM, strides[1], _ITEM)


def _turned(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
    return (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
