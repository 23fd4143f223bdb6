"""Operators that read and write at positions."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor

from ._table import NotRead, Operator, numbers, reader

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _counted(indices: Tensor, size: int) -> Any:
    """Positions counted from the start."""
    wide = indices.long()
    return flambeau.where(wide < 0, wide + size, wide)


@reader("Gather")
def gather(node: Operator, x: Tensor, indices: Tensor) -> Any:
    axis = node.get("axis", 0) % x.dim()
    flat = x.index_select(axis, _counted(indices, x.shape[axis]).reshape(-1))
    return flat.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


@reader("GatherElements")
def gather_elements(node: Operator, x: Tensor, indices: Tensor) -> Any:
    axis = node.get("axis", 0)
    return x.gather(axis, _counted(indices, x.shape[axis]))


@reader("GatherND")
def gather_nd(node: Operator, x: Tensor, indices: Tensor) -> Any:
    batch, depth = node.get("batch_dims", 0), indices.shape[-1]
    outer, sizes = list(x.shape[:batch]), x.shape[batch : batch + depth]
    rows = _flat_places(indices, sizes).reshape(_count(outer), -1)
    rest = list(x.shape[batch + depth :])
    table = x.reshape(_count(outer), _count(list(sizes)), *rest)
    picked = flambeau.stack([block.index_select(0, places) for block, places in zip(table, rows, strict=True)])
    return picked.reshape([*indices.shape[:-1], *rest])


def _count(sizes: list[int]) -> int:
    total = 1
    for each in sizes:
        total *= each
    return total


def _flat_places(indices: Tensor, sizes: tuple[int, ...]) -> Any:
    """Positions in several dimensions as positions in all of them together."""
    places = flambeau.zeros(indices.shape[:-1], dtype=flambeau.int64)
    for dim, size in enumerate(sizes):
        places = places * size + _counted(indices[..., dim], size)
    return places


@reader("ScatterElements", "Scatter")
def scatter_elements(node: Operator, x: Tensor, indices: Tensor, updates: Tensor) -> Any:
    axis, reduction = node.get("axis", 0), node.get("reduction", "none")
    places = _counted(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, _REDUCTIONS[reduction], include_self=True)


@reader("ScatterND")
def scatter_nd(node: Operator, x: Tensor, indices: Tensor, updates: Tensor) -> Any:
    depth = indices.shape[-1]
    sizes, rest = x.shape[:depth], list(x.shape[depth:])
    places = _flat_places(indices, sizes).reshape(-1, 1).expand(-1, _count(rest))
    table, values = x.reshape(_count(list(sizes)), _count(rest)), updates.reshape(places.shape)
    reduction = node.get("reduction", "none")
    if reduction == "none":
        made = table.scatter(0, places, values)
    else:
        made = table.scatter_reduce(0, places, values, _REDUCTIONS[reduction], include_self=True)
    return made.reshape(x.shape)


@reader("TensorScatter")
def tensor_scatter(node: Operator, past: Tensor, update: Tensor, written: Tensor | None = None) -> Any:
    axis = node.get("axis", -2) % past.dim()
    starts = [0] * past.shape[0] if written is None else numbers(written)
    size, length = past.shape[axis], update.shape[axis]
    rows = []
    for row, start in enumerate(starts):
        places = flambeau.arange(start, start + length)
        if node.get("mode", "linear") == "circular":
            places = places % size
        rows.append(past[row].index_copy(axis - 1, places, update[row]))
    return flambeau.stack(rows)


@reader("OneHot")
def one_hot(node: Operator, indices: Tensor, depth: Tensor, values: Tensor) -> Any:
    count, axis = int(depth.reshape(()).item()), node.get("axis", -1)
    wide = indices.long()
    places = flambeau.where(wide < 0, wide + count, wide).unsqueeze(axis)
    rank = places.dim()
    line = flambeau.arange(count).reshape([count if dim == axis % rank else 1 for dim in range(rank)])
    return flambeau.where(places == line, values[1], values[0])


@reader("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(node: Operator, x: Tensor, indices: Tensor) -> Any:
    if x.dim() == 0:
        raise NotRead("features of a tensor without dimensions")
    return x.index_select(-1, indices.long().reshape(-1))
