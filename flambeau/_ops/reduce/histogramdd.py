"""Histograms in several dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.dtype import float32, float64
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.host_read import elements
from ..._dispatch.on_host import on_host
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from .reductions import no_kernel
from .statistics import edges_between

HISTOGRAMDD = return_type("histogramdd", ("hist", "bin_edges"))


_NO_DERIVATIVE = no_derivative("_histogramdd_from_bin_cts")


def _cells(self: Array, edges: list[Array], weight: Array | None, density: bool) -> Array:
    return np.empty_like(self, shape=[len(each) - 1 for each in edges])


@primitive("NotImplemented", self=_NO_DERIVATIVE, weight=_NO_DERIVATIVE, shape=_cells)
@on_host
def _count(self: Array, edges: list[Array], weight: Array | None, density: bool) -> Array:
    points = self.reshape(-1, self.shape[-1])
    shape = [len(each) - 1 for each in edges]
    inside = np.ones(len(points), bool)
    places = []
    for column, bounds in zip(points.T, edges, strict=True):
        inside &= (column >= bounds[0]) & (column <= bounds[-1])
        places.append(np.clip(np.searchsorted(bounds, column, "right") - 1, 0, max(len(bounds) - 2, 0)))
    cells = np.ravel_multi_index([each[inside] for each in places], shape)
    weights = None if weight is None else weight.reshape(-1)[inside]
    counts = np.bincount(cells, weights, math.prod(shape)).reshape(shape).astype(self.dtype)
    if density:
        counts /= counts.sum()
        for dim, bounds in enumerate(edges):
            counts /= np.diff(bounds).reshape([-1 if each == dim else 1 for each in range(len(shape))])
    return counts


def _bounds(input: Tensor, range: Any) -> list[tuple[float, float]]:
    """For each dimension the first and the last edge; those of the data unless given."""
    dims = input.shape[-1]
    if range is not None:
        if len(range) != 2 * dims:
            raise RuntimeError(
                f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
                f"{len(range)}"
            )
        pairs = [(float(range[2 * dim]), float(range[2 * dim + 1])) for dim in _count_up(dims)]
    elif not input.numel():
        pairs = [(0.0, 1.0)] * dims
    else:
        points = elements(input).reshape(-1, dims)
        pairs = [(float(column.min()), float(column.max())) for column in points.T]
    for dim, (low, high) in enumerate(pairs):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
            )
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in pairs]


_count_up = range
"""The builtin, which an argument's name hides."""


def _edges(input: Tensor, bins: Any, range: Any) -> list[Tensor]:
    dims = input.shape[-1]
    if isinstance(bins, int):
        bins = [bins] * dims
    if any(isinstance(each, Tensor) for each in bins):
        if len(bins) != dims:
            raise RuntimeError(
                f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got "
                f"{len(bins)}"
            )
        for dim, each in enumerate(bins):
            if each.dtype is not input.dtype:
                raise RuntimeError(
                    "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                    f"dtype {input.dtype} and bins for dimension {dim} with dtype {each.dtype}"
                )
            if each.dim() != 1 or not each.numel():
                raise RuntimeError(
                    "torch.histogramdd: bins tensor should have one dimension and at least one edge, but got "
                    f"shape {list(each.shape)} for dimension {dim}"
                )
        return list(bins)
    if len(bins) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input. (got "
            f"{len(bins)} for an input of shape {list(input.shape)})"
        )
    for dim, each in enumerate(bins):
        if each <= 0:
            raise RuntimeError(f"torch.histogramdd(): bins must be > 0, but got {each} for dimension {dim}")
    if input._kind.dataless and range is None:
        columns = input.reshape(-1, input.shape[-1]).unbind(1)
        return [edges_between(column.amin(), column.amax(), each) for column, each in zip(columns, bins, strict=True)]
    return [
        input.new_tensor(np.linspace(low, high, each + 1))
        for each, (low, high) in zip(bins, _bounds(input, range), strict=True)
    ]


@public(method=False)
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """How many of the points in the rows of `input` fall into each cell of a grid, and the grid's edges.

    `bins` is the number of cells in each dimension, one for all, or a tensor of edges for each.
    """
    if input.dim() < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}")
    if weight is not None:
        if weight.shape != input.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with "
                f"shape {list(weight.shape)}"
            )
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
            )
    if input.dtype not in (float32, float64):
        raise no_kernel("histogramdd", input)
    edges = _edges(input, bins, range)
    return named(HISTOGRAMDD, (_count(input, edges, weight, density), tuple(edges)))
