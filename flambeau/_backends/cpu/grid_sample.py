"""`grid_sample` of arrays without gaps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.images.grid_sample import sample_grid, sample_grid_backward
from .dtypes import float_name

Array = Any


def sampled(input: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array | None:
    """The samples; None: NumPy has to do it."""
    name = float_name(input)
    if name not in ("float32", "float64"):
        return None
    out = np.empty((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    input, grid = np.ascontiguousarray(input), np.ascontiguousarray(grid)
    kernel = sample_grid(name, grid.shape[-1], mode, padding, align_corners)
    return kernel(out, input, grid, *_sizes(input, grid))


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
    kernel(of_input, of_grid, grad, input, grid, *_sizes(input, grid))
    return of_input, of_grid


def _sizes(input: Array, grid: Array) -> tuple[int, ...]:
    return (*input.shape[:2], math.prod(grid.shape[1:-1]), *input.shape[2:])
