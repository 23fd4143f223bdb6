"""The three products of convolutions where there is little to multiply: one call of a generated kernel each.

They have the arguments of those in `_ops/nn/conv_kernels.py`, and return None for dtypes that kernels do not read.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...._codegen.images.conv_few import correlate_few, correlate_transposed_few, weigh_few
from ...._core.geometry.moving_windows import Geometry, Shape, strides_for
from ..memory.workspace import DIRECT, Workspace
from ..runtime.dtypes import float_name, name_of_type

Array = Any


@functools.lru_cache(maxsize=256)
def _table(geometry: Geometry) -> Array:
    return np.array(geometry[:3], np.int64)


def correlate(
    input: Array, weight: Array, bias: Array | None, output: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The convolution of `input` with `weight`, plus `bias`."""
    return _multiplied(correlate_few, input, weight, bias, (weight.shape[0], *output), geometry, last, workspace)


def correlate_transposed(
    grad: Array, weight: Array, bias: Array | None, sizes: Shape, geometry: Geometry, last: bool,
    workspace: Workspace = DIRECT,
) -> Array | None:  # fmt: skip
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    shape = (weight.shape[1] * geometry.groups, *sizes)
    return _multiplied(correlate_transposed_few, grad, weight, bias, shape, geometry, last, workspace)


def _multiplied(
    kernel: Any, source: Array, weight: Array, bias: Array | None, shape: Shape, geometry: Geometry, last: bool,
    workspace: Workspace,
) -> Array | None:  # fmt: skip
    """What one of the two kernels makes of an array and the weight; `shape` is that of one sample of the result."""
    dtype = source.dtype
    run = _of_type(kernel, dtype, len(shape) - 1, bias is not None)
    if run is None or weight.dtype is not dtype:
        return None
    sizes = source.shape[0], *shape
    result = workspace.arranged(sizes, strides_for(sizes, last), dtype) if last else workspace.empty(sizes, dtype)
    more = () if bias is None else (bias,)
    return workspace.run(run, result, source, weight, _table(geometry), weight.shape[0] // geometry.groups, *more)


@functools.cache
def _of_type(kernel: Any, dtype: np.dtype[Any], rank: int, has_bias: bool) -> Any:
    name = name_of_type(dtype)
    return None if name is None else kernel(name, rank, has_bias)


def weight_gradient(
    input: Array, grad: Array, kernel: Shape, geometry: Geometry, last: bool, workspace: Workspace = DIRECT
) -> Array | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    name = float_name(input)
    if name is None or grad.dtype is not input.dtype:
        return None
    outputs, groups = grad.shape[1], geometry.groups
    shape = outputs, input.shape[1] // groups, *kernel
    result = (
        workspace.arranged(shape, strides_for(shape, last), input.dtype)
        if last
        else workspace.empty(shape, input.dtype)
    )
    return workspace.run(weigh_few(name, len(kernel)), result, input, grad, _table(geometry), outputs // groups)
