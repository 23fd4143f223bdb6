"""Convolutions and products by oneDNN, where it is installed.

The functions have the names and arguments of those in `_ops/nn/conv_kernels.py`, and return None for what the library
does not do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.geometry.moving_windows import Geometry, Shape, correlated_sizes
from ...tiers import generated
from .. import onednn
from ..memory.workspace import DIRECT, Workspace
from . import Unsupported, available
from .gemm import product_of_rows
from .library import get
from .memory import BUFFERS

__all__ = [
    "available",
    "correlate",
    "correlate_transposed",
    "free_idle_memory",
    "multiplier",
    "product",
    "product_of_rows",
    "products_of_batch",
    "weight_gradient",
]


def free_idle_memory() -> None:
    """Give back what calls have left for the next ones, such as scratch memory."""
    BUFFERS.clear()


def correlate(
    input: Any, weight: Any, bias: Any, output: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The convolution of `input` with `weight`, plus `bias`."""
    if correlated_sizes(input.shape[2:], weight.shape[2:], geometry) != output:
        return None
    blocks = None if last else generated("conv_blocks")
    if (
        blocks is not None
        and (done := blocks.correlate(input, weight, bias, geometry, workspace, _convolution)) is not None
    ):
        return done
    return _convolution(input, weight, bias, geometry, last, workspace)


def _convolution(
    input: Any, weight: Any, bias: Any, geometry: Geometry, last: bool = False, workspace: Workspace = DIRECT
) -> Any:
    try:
        return onednn.convolution(input, weight, bias, onednn.Geometry(*geometry), last, workspace=workspace)
    except Unsupported:
        return None


def correlate_transposed(
    grad: Any, weight: Any, bias: Any, sizes: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    shape = (grad.shape[0], weight.shape[1] * geometry.groups, *sizes)
    if correlated_sizes(sizes, weight.shape[2:], geometry) != grad.shape[2:]:
        return None
    try:
        result = onednn.convolution_input_gradient(
            grad, weight, shape, onednn.Geometry(*geometry), last, workspace=workspace
        )
    except Unsupported:
        return None
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(sizes))
    return result


def weight_gradient(
    input: Any, grad: Any, kernel: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Any:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    shape = (grad.shape[1], input.shape[1] // geometry.groups, *kernel)
    if correlated_sizes(input.shape[2:], kernel, geometry) != grad.shape[2:]:
        return None
    try:
        moves = onednn.Geometry(*geometry)
        return onednn.convolution_weight_gradient(grad, input, shape, moves, False, last, workspace)[0]
    except Unsupported:
        return None


_SINGLE = np.dtype(np.float32)
_LONGEST = 1024
_FEW_LONG = 256**3
_MUCH_TO_COPY = 2**20
_LARGE_IN_BATCH = 64**3
"""So many multiplications has a large product of a batch."""
_LEAST_IN_ALL = 2 * 64**3
"""Up to so many multiplications of a whole batch NumPy's library is called: it has the shorter way."""


def product(left: Any, right: Any, addend: Any = None, workspace: Workspace = DIRECT) -> Any:
    """The product of two matrices, or of two batches of them; None: NumPy is quicker, or has to do it.

    With an `addend`, a vector, every row of a product of two matrices plus that; None: it is no step less.
    """
    try:
        if left.ndim > 2 or left.dtype != _SINGLE:
            if addend is not None and (left.dtype.name != "bfloat16" or not get().multiplies_bfloat16):
                return None  # in float32 it is quicker
            return onednn.matmul(left, right, addend, workspace)
        if (done := onednn.gemm(left, right, addend, workspace)) is not None:
            return done
        return _by_primitives(left, right, workspace) if addend is None else None
    except Unsupported:
        return None


def _by_primitives(left: Any, right: Any, workspace: Workspace) -> Any:
    """The product of two matrices of float32; None: NumPy is quicker.

    Primitives add up the numbers of a row one by one, and rounding errors with them: matrices with longer rows are cut
    into pieces, whose products are added. They copy a right matrix whose rows lie one after another, and do it slowly.
    """
    length = left.shape[1]
    if right.size > _MUCH_TO_COPY and not right.flags.f_contiguous:
        return None
    if length <= _LONGEST:
        return onednn.matmul(left, right, workspace=workspace)
    if left.size * right.shape[1] <= _FEW_LONG and not right.flags.f_contiguous:
        return None
    size = -(-length // -(-length // _LONGEST))
    total = onednn.matmul(left[:, :size], right[:size], workspace=workspace)
    for start in range(size, length, size):
        piece = slice(start, start + size)
        np.add(total, onednn.matmul(left[:, piece], right[piece], workspace=workspace), out=total)
    return total


def products_of_batch(left: Any, right: Any, out: Any = None) -> Any:
    """The products of two batches of matrices of float32; None: NumPy's library is quicker, or has to do it.

    That library takes long for small products with a right factor that lies by columns, and for large ones of all
    kinds; for other small ones it is quicker.
    """
    (*batch, rows, length), columns = left.shape, right.shape[-1]
    if not batch or right.shape[:-1] != (*batch, length) or length > _LONGEST:
        return None
    if left.dtype != _SINGLE or right.dtype != _SINGLE or not left.flags.aligned or not right.flags.aligned:
        return None
    each, item = rows * length * columns, 4
    (left_down, left_across), (down, across) = left.strides[-2:], right.strides[-2:]
    if item not in (left_down, left_across) or item not in (down, across) or 0 in left.strides or 0 in right.strides:
        return None
    if each < _LARGE_IN_BATCH and not (down == item < across and each * math.prod(batch) > _LEAST_IN_ALL):
        return None
    if out is not None and not (out.shape == (*batch, rows, columns) and out.flags.carray and out.dtype == _SINGLE):
        return None
    try:
        return onednn.matmul(left, right, result=out)
    except Unsupported:
        return None


def multiplier(rows: int, right: Any) -> Callable[[Any, Any], None] | None:
    """What writes the products of matrices of so many rows, without gaps, with `right`: (left, out)."""
    try:
        return onednn.Multiplier(rows, right)
    except Unsupported:
        return None
