"""Elements by position: `x[index]` and its kin, gather and scatter, rows by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..._core.device import CPU
from ..._core.kind import kind_of_array
from ..._core.tensor import Tensor
from ..._dispatch.factory import constant, constant_beside
from ..._dispatch.op import Op
from .by_axes import rank, shift
from .level import Vmap
from .rules import decomposition, rule


def examples(level: Vmap, like: Tensor, ndim: int) -> Tensor:
    """The numbers of the examples, with `ndim` dimensions of size 1 after them."""
    return constant_beside(np.arange(level.size).reshape(level.size, *[1] * ndim), like)


# ----- x[index] -----------------------------------------------------------------------------------------------------


class _Places:
    """Where `x[index]` takes elements from, with the indexed dimensions in front of the others."""

    def __init__(self, level: Vmap, ndim: int, advanced: Sequence[Any]) -> None:
        entries = [*advanced, *[None] * (ndim - len(advanced))]
        dims = [dim for dim, each in enumerate(entries) if each is not None]
        others = [dim for dim in range(ndim) if dim not in dims]
        self.order = (0, *[dim + 1 for dim in (*dims, *others)])
        tensors: list[Any] = [
            each if isinstance(each, Tensor) else constant(each, kind_of_array(each.dtype, CPU))
            for each in (entries[dim] for dim in dims)
        ]
        self.shape = np.broadcast_shapes(*[each._array.shape for each in tensors])
        count = len(self.shape)
        self.index: tuple[Any, ...] = tuple(
            each.value.reshape(level.size, *[1] * (count - rank(each)), *each._array.shape) if level.has(each) else each
            for each in tensors
        )
        self.index = (examples(level, tensors[0], count), *self.index)
        # Where the indexed dimensions follow one another, the result has theirs in that place; else in front.
        adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
        first = dims[0] if adjacent else 0
        picked = list(range(1, count + 1))
        rest = list(range(count + 1, count + 1 + len(others)))
        self.back = (0, *rest[:first], *picked, *rest[first:])

    def put_back(self) -> list[int]:
        """The order of dimensions that leads from the result's to those of `index`."""
        return [self.back.index(dim) for dim in range(len(self.back))]


@rule("index")
def _index(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, advanced, _ = args
    places = _Places(level, rank(tensor), advanced)
    return level.front(tensor).permute(places.order)[places.index].permute(places.back)


def _values(level: Vmap, values: Tensor, places: _Places, others: int) -> Any:
    """The values to store, for all examples, with the indexed dimensions in front."""
    ndim = len(places.shape) + others
    value = level.front(values)
    value = value.reshape(level.size, *[1] * (ndim - rank(values)), *values._array.shape)
    return value.permute(places.put_back())


@rule("index_put")
def _index_put(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, advanced, _, values, accumulate = args
    places = _Places(level, rank(tensor), advanced)
    moved = level.front(tensor).permute(places.order)
    stored = _values(level, values, places, rank(tensor) - len(places.index) + 1)
    result = moved.index_put(places.index, stored, accumulate)
    return result.permute([places.order.index(dim) for dim in range(len(places.order))])


@rule("index_backward")
def _index_backward(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    grad, sizes, advanced, _ = args
    zeros = grad.value.new_zeros((level.size, *sizes))
    return _index_put(level, op, (level.wrapped(zeros), advanced, None, grad, True))


# ----- along one dimension ------------------------------------------------------------------------------------------


def _some(level: Vmap, tensor: Any) -> Any:
    """All examples of a tensor, each with at least one dimension."""
    value = level.front(tensor)
    return value if rank(tensor) else value.unsqueeze(1)


@rule("gather", "scatter_src scatter_value scatter_src_reduce scatter_value_reduce scatter_add scatter_reduce")
def _gather(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    given = [_some(level, each) if isinstance(each, Tensor) else each for each in args]
    given[1] = shift(args[1], rank(args[0]))
    shape = args[2 if op.name == "gather" else 0]._array.shape
    return op(*given).reshape(level.size, *shape)


def _expanded_positions(level: Vmap, index: Any, shape: Sequence[int], dim: int) -> Any:
    """Positions along `dim` of each example, repeated along the other dimensions of `shape`, which are a value's."""
    sizes = [1] * len(shape)
    sizes[0], sizes[dim] = level.size, index._array.size
    full = [*shape]
    full[dim] = index._array.size
    return level.front(index).reshape(sizes).expand(full)


@rule("index_select")
def _index_select(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim, index = args
    value = _some(level, tensor)
    dim = shift(dim, rank(tensor))
    if not level.has(index):
        result = op(value, dim, index)
    else:
        result = value.gather(dim, _expanded_positions(level, index, value._array.shape, dim))
    return result if rank(tensor) else result.reshape(level.size)


@rule("index_add", "index_copy", "index_reduce", "index_fill_number", "index_fill_tensor")
def _index_write(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim, index, source, *rest = args
    value = _some(level, tensor)
    dim = shift(dim, rank(tensor))
    ndim = value._array.ndim
    if isinstance(source, Tensor) and not op.name.startswith("index_fill"):
        source = level.front(source)
        source = source.reshape(level.size, *[1] * (ndim - source._array.ndim), *source._array.shape[1:])
    if not level.has(index) and not level.has(source):
        result = op(value, dim, index, source, *rest)
    else:
        spread = _expanded_positions(level, index, value._array.shape, dim)
        if op.name == "index_add":
            result = value.scatter_add(dim, spread, source * rest[0] if rest[0] != 1 else source)
        elif op.name == "index_copy":
            result = value.scatter(dim, spread, source)
        elif op.name == "index_reduce":
            result = value.scatter_reduce(dim, spread, source, rest[0], include_self=rest[1])
        elif op.name == "index_fill_number":
            result = value.scatter(dim, spread, source)
        else:
            filling = level.front(source).reshape(level.size, *[1] * (ndim - 1)).expand(spread._array.shape)
            result = value.scatter(dim, spread, filling)
    return result.reshape(level.size, *tensor._array.shape)


@rule("distinct_positions")
def _distinct(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """Positions that occur twice do no harm here: what is written is the same."""
    index, size = args
    return index.value.reshape(level.size, index._array.size).remainder(max(size, 1))


@decomposition("take")
def _take(self: Any, index: Tensor) -> Any:
    flat = self.reshape(-1)
    return flat.gather(0, _from_front(index, flat).reshape(-1)).reshape(index._array.shape)


@decomposition("put")
def _put(self: Tensor, index: Any, source: Any, accumulate: bool) -> Tensor:
    flat = self.reshape(-1)
    positions = _from_front(index, flat).reshape(-1)
    values = source.reshape(-1)
    done = flat.scatter_add(0, positions, values) if accumulate else flat.scatter(0, positions, values)
    return done.reshape(self._array.shape)


def _from_front(index: Any, flat: Tensor) -> Any:
    return index.where(index >= 0, index + flat._array.size)


# ----- masks --------------------------------------------------------------------------------------------------------


@rule("masked_select")
def _masked_select(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, mask = args
    if level.has(mask):
        _dynamic(level, op, args)
    shape = np.broadcast_shapes(tensor._array.shape, mask._array.shape)
    places = mask.expand(shape).reshape(-1).nonzero().reshape(-1)
    value = tensor.value.reshape(level.size, *[1] * (len(shape) - rank(tensor)), *tensor._array.shape)
    return value.expand(level.size, *shape).reshape(level.size, math.prod(shape)).index_select(1, places)


@rule("nonzero", "unique", "unique_consecutive")
def _dynamic(level: Vmap, op: Op, args: Sequence[Any]) -> NoReturn:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{op.name}: each example would have a result of another size. Use torch.where, or nonzero_static."
    )


@decomposition("masked_scatter")
def _masked_scatter(self: Tensor, mask: Any, source: Tensor) -> Tensor:
    if not source._array.size:
        return self.clone()  # nothing is stored: the mask has no true element
    mask = mask.expand(self._array.shape)
    positions = (mask.reshape(-1).long().cumsum(0) - 1).clamp(0, source._array.size - 1)
    return self.where(mask.logical_not(), source.reshape(-1).gather(0, positions).reshape(self._array.shape))


def _in_range(self: Tensor, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Positions of which those that a mask hides may be anywhere."""
    return tuple(each.clamp(-size, size - 1) for each, size in zip(indices, self._array.shape, strict=False))


def _hidden(mask: Any, ndim: int) -> Any:
    return mask.logical_not().reshape(*mask._array.shape, *[1] * (ndim - rank(mask)))


@decomposition("unsafe_masked_index")
def _unsafe_masked_index(self: Tensor, mask: Any, indices: Sequence[Any], fill: Any) -> Tensor:
    found = self[_in_range(self, indices)]
    return found.masked_fill(_hidden(mask, rank(found)), fill)


@decomposition("unsafe_masked_index_put_accumulate")
def _unsafe_masked_index_put(self: Tensor, mask: Any, indices: Sequence[Any], values: Tensor) -> Tensor:
    added = values.masked_fill(_hidden(mask, rank(values)), 0)
    return self.index_put(_in_range(self, indices), added, accumulate=True)


@decomposition("unravelled")
def _unravelled(self: Any, sizes: tuple[int, ...]) -> Any:
    results = []
    for size in reversed(sizes):
        results.append(self.remainder(size))
        self = self.div(size, rounding_mode="floor")
    return tuple(reversed(results))


# ----- rows of a table ----------------------------------------------------------------------------------------------


def _numbered(level: Vmap, indices: Any, rows: int) -> Any:
    """Row numbers in the tables of all examples, one below the other."""
    return level.front(indices) + examples(level, indices, rank(indices)) * rows


@rule("embedding")
def _embedding(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    weight, indices, padding, *options = args
    if not level.has(weight):
        return op(weight, indices.value, padding, *options)
    rows, width = weight._array.shape
    found = op(weight.value.reshape(level.size * rows, width), _numbered(level, indices, rows), -1, *options)
    if padding is None or padding < 0:
        return found
    return found.where((level.front(indices) != padding).unsqueeze(-1), found.detach())


@rule("embedding_dense_backward")
def _embedding_backward(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    grad, indices, rows, padding, *options = args
    grads = level.front(grad)
    if padding is not None and padding >= 0:
        grads = grads.masked_fill((level.front(indices) == padding).unsqueeze(-1), 0)
    width = grads._array.shape[-1]
    return op(grads, _numbered(level, indices, rows), rows * level.size, -1, *options).reshape(level.size, rows, width)


@rule("embedding_renorm_")
def _embedding_renorm(level: Vmap, op: Op, args: Sequence[Any]) -> None:
    weight, indices, *norm = args
    if not level.has(weight):
        op(weight, indices.value.reshape(-1), *norm)
        return
    rows, width = weight._array.shape
    table = weight.value.reshape(level.size * rows, width)
    op(table, _numbered(level, indices, rows).reshape(-1), *norm)
    weight.value.copy_(table.reshape(weight.value._array.shape))


@rule("bags")
def _bags(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    """The bags of all examples as those of one table, or of all tables below one another."""
    weight, indices, offsets, mode, sample_weights, by_frequency, sparse, include_last, padding = args
    starts = level.front(offsets)
    starts = starts[:, :-1] if include_last else starts
    bags, count = starts._array.shape[1], indices._array.size
    starts = (starts + examples(level, offsets, 1) * count).reshape(-1)
    rows, width = weight._array.shape
    numbers = level.front(indices)
    shared = not level.has(weight) and not by_frequency  # frequencies are those of one example
    if not shared:
        numbers = _numbered(level, indices, rows)
        if padding >= 0:  # what is left out is one row of one table
            numbers = numbers.masked_fill(level.front(indices) == padding, padding)
        weight = level.front(weight).reshape(level.size * rows, width)
    weights = None if sample_weights is None else level.front(sample_weights).reshape(-1)
    given = weight, numbers.reshape(-1), starts, mode, weights, by_frequency, sparse, False, padding
    results, owners, sizes, origins = op(*given)
    sizes = sizes.reshape(level.size, bags)
    owners = owners.reshape(level.size, count) - examples(level, owners, 1) * bags
    origins = origins.reshape(level.size, bags, width).remainder(rows) if origins._array.ndim > 1 else sizes
    return results.reshape(level.size, bags, width), owners, sizes, origins
