"""Reductions and orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor

from ._table import NotRead, Operator, axes_of, reader


def _logsumexp(x: Tensor, dims: Sequence[int], keep: bool) -> Any:
    return flambeau.logsumexp(x, tuple(dims), keep)


def _prod(x: Tensor, dims: Sequence[int], keep: bool) -> Any:
    for dim in sorted((each % max(x.dim(), 1) for each in dims), reverse=True):
        x = flambeau.prod(x, dim, keepdim=keep)
    return x


_REDUCTIONS: dict[str, Callable[[Tensor, Sequence[int], bool], Tensor]] = {
    "ReduceSum": lambda x, dims, keep: flambeau.sum(x, tuple(dims), keepdim=keep).to(x.dtype),
    "ReduceMean": lambda x, dims, keep: flambeau.mean(x, tuple(dims), keepdim=keep),
    "ReduceMax": lambda x, dims, keep: flambeau.amax(x, tuple(dims), keepdim=keep),
    "ReduceMin": lambda x, dims, keep: flambeau.amin(x, tuple(dims), keepdim=keep),
    "ReduceProd": _prod,
    "ReduceL1": lambda x, dims, keep: flambeau.sum(x.abs(), tuple(dims), keepdim=keep).to(x.dtype),
    "ReduceL2": lambda x, dims, keep: _root(flambeau.sum(x * x, tuple(dims), keepdim=keep), x),
    "ReduceSumSquare": lambda x, dims, keep: flambeau.sum(x * x, tuple(dims), keepdim=keep).to(x.dtype),
    "ReduceLogSum": lambda x, dims, keep: flambeau.log(flambeau.sum(x, tuple(dims), keepdim=keep)),
    "ReduceLogSumExp": _logsumexp,
}


def _root(squares: Tensor, like: Tensor) -> Any:
    return flambeau.sqrt(squares.double() if not like.dtype.is_floating_point else squares).to(like.dtype)


@reader(*_REDUCTIONS)
def reduce(node: Operator, x: Tensor, axes: Tensor | None = None) -> Any:
    dims = axes_of(node, axes)
    keep = bool(node.get("keepdims", 1))
    if not dims:
        if node.get("noop_with_empty_axes", 0):
            return _alone(node.kind, x)
        dims = list(range(x.dim()))
    if not x.dim():
        return _alone(node.kind, x)
    if x.numel() == 0 and node.kind in ("ReduceMax", "ReduceMin") and any(x.shape[dim] == 0 for dim in dims):
        return _of_nothing(node.kind, x, dims, keep)
    if x.dtype is flambeau.bool:
        return _REDUCTIONS[node.kind](x.int(), dims, keep).bool()
    return _REDUCTIONS[node.kind](x, dims, keep)


def _alone(kind: str, x: Tensor) -> Any:
    """The reduction of each element by itself."""
    if kind in ("ReduceL1", "ReduceL2"):
        return x.abs()
    if kind == "ReduceSumSquare":
        return x * x
    return flambeau.log(x) if kind == "ReduceLogSum" else x


def _of_nothing(kind: str, x: Tensor, dims: Sequence[int], keep: bool) -> Any:
    if x.dtype.is_floating_point:
        start: Any = float("-inf") if kind == "ReduceMax" else float("inf")
    elif x.dtype is flambeau.bool:
        start = kind == "ReduceMin"
    else:
        limits = flambeau.iinfo(x.dtype)
        start = limits.min if kind == "ReduceMax" else limits.max
    taken = {each % x.dim() for each in dims}
    sizes = [1 if dim in taken else size for dim, size in enumerate(x.shape) if keep or dim not in taken]
    return flambeau.full(sizes, start, dtype=x.dtype)


@reader("ArgMax", "ArgMin")
def place(node: Operator, x: Tensor) -> Any:
    axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
    if node.get("select_last_index", 0):
        found = _place(node, x.flip(axis), axis, keep)
        return x.shape[axis] - 1 - found
    return _place(node, x, axis, keep)


def _place(node: Operator, x: Tensor, axis: int, keep: bool) -> Any:
    return x.argmax(axis, keep) if node.kind == "ArgMax" else x.argmin(axis, keep)


@reader("TopK")
def top_k(node: Operator, x: Tensor, k: Tensor | None = None) -> tuple[Tensor, Tensor]:
    count = node.get("k") if k is None else int(k.item())
    axis = node.get("axis", -1)
    values, places = flambeau.sort(x, dim=axis, descending=bool(node.get("largest", 1)), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@reader("NonZero")
def nonzero(node: Operator, x: Tensor) -> Any:
    return flambeau.nonzero(x).t()


@reader("Unique")
def unique(node: Operator, x: Tensor) -> tuple[Tensor, ...]:
    axis = node.get("axis")
    dim = None if axis is None else axis
    made: Any = flambeau.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=dim)
    values, inverse, counts = made
    inverse = inverse.reshape(-1)
    order = flambeau.arange(inverse.numel())
    first = flambeau.full((counts.numel(),), inverse.numel(), dtype=flambeau.int64)
    first = first.scatter_reduce(0, inverse, order, "amin")
    if not node.get("sorted", 1):
        by = first.argsort()
        values = values[by] if dim is None else values.index_select(dim, by)
        counts, first = counts[by], first[by]
        back = flambeau.empty_like(by).scatter(0, by, flambeau.arange(by.numel()))
        inverse = back[inverse]
    return values, first, inverse, counts


@reader("Compress")
def compress(node: Operator, x: Tensor, condition: Tensor) -> Any:
    axis = node.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.index_select(axis, flambeau.nonzero(condition).reshape(-1))


@reader("MeanVarianceNormalization")
def mean_variance_normalization(node: Operator, x: Tensor) -> Any:
    dims = tuple(node.get("axes", (0, 2, 3)))
    gap = x - x.mean(dims, keepdim=True)
    return gap / (flambeau.sqrt((gap * gap).mean(dims, keepdim=True)) + 1e-9)


@reader("LpNormalization")
def lp_normalization(node: Operator, x: Tensor) -> Any:
    p, axis = node.get("p", 2), node.get("axis", -1)
    if p not in (1, 2):
        raise NotRead(f"a norm of order {p}")
    norm = flambeau.linalg.vector_norm(x, p, axis, keepdim=True)
    return flambeau.where(norm == 0, flambeau.zeros_like(x), x / norm)
