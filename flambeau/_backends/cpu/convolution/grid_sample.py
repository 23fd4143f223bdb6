"""`grid_sample` of arrays without gaps."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.images.grid_sample import sample_grid, sample_grid_backward
from ..runtime.dtypes import float_name, name_of_type

Array = Any
Shape = tuple[int, ...]


def sampled(input: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array | None:
    """The samples; None: NumPy has to do it."""
    plan = _plan(input.dtype, input.shape, grid.shape, mode, padding, align_corners)
    if plan is None:
        return None
    kernel, shape, sizes = plan
    return kernel(np.empty(shape, input.dtype), np.ascontiguousarray(input), np.ascontiguousarray(grid), *sizes)


@functools.lru_cache(256)
def _plan(
    dtype: np.dtype[Any], image: Shape, points: Shape, mode: int, padding: int, align_corners: bool
) -> tuple[Any, Shape, Shape] | None:
    """The kernel, the shape of its result and the sizes that it is called with."""
    name = name_of_type(dtype)
    if name not in ("float32", "float64") or math.prod(image[2:]) >= 2**31:
        return None
    kernel = sample_grid(name, points[-1], mode, padding, align_corners)
    return kernel, (*image[:2], *points[1:-1]), _sizes(image, points)


def sampled_backward(
    grad: Array, input: Array, grid: Array, mode: int, padding: int, align_corners: bool, output_mask: tuple[bool, bool]
) -> tuple[Array, Array] | None:
    """The gradients by input and grid, as far as they are wanted; None: NumPy has to do it."""
    name = float_name(input)
    if name not in ("float32", "float64") or not any(output_mask):
        return None
    grad, input, grid = (np.ascontiguousarray(each) for each in (grad, input, grid))
    nothing = np.zeros((), grad.dtype)
    of_input = np.zeros(input.shape, grad.dtype) if output_mask[0] else np.broadcast_to(nothing, input.shape)
    of_grid = np.empty(grid.shape, grad.dtype) if output_mask[1] else np.broadcast_to(nothing, grid.shape)
    kernel = sample_grid_backward(name, grid.shape[-1], mode, padding, align_corners, output_mask)
    kernel(of_input, of_grid, grad, input, grid, *_sizes(input.shape, grid.shape))
    return of_input, of_grid


def _sizes(image: Shape, points: Shape) -> Shape:
    return (*image[:2], math.prod(points[1:-1]), *image[2:])
