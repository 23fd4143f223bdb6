"""Reading and writing at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._graph import BOOL, INT64, Graph, Value
from .._sizes import product
from ._table import Result, Unsupported, converter
from .pointwise import beside


def _front(self: Value, advanced: Sequence[Value | None]) -> tuple[list[int], list[int]]:
    """The dimensions that have positions, and the others."""
    taken = [dim for dim, each in enumerate(advanced) if each is not None]
    return taken, [dim for dim in range(self.rank) if dim not in taken]


def _places(g: Graph, advanced: Sequence[Value | None]) -> tuple[Value, int]:
    """The positions of all indexed dimensions together along a last dimension; of how many dimensions they are."""
    given = [g.cast(each, INT64) for each in advanced if each is not None]
    rank = max(each.rank for each in given)
    if len(given) > 1 and any(each.shape != given[0].shape for each in given):
        total = given[0]
        for each in given[1:]:
            total = g.op("Add", total, g.op("Mul", each, 0))
        shape = g.op("Shape", total, dtype=INT64)
        given = [g.op("Expand", each, shape) for each in given]
    return g.op("Concat", *[g.unsqueeze(each, -1) for each in given], axis=-1), rank


@converter("index")
def index(g: Graph, call: Result, self: Value, advanced: Sequence[Value | None], indices: Any) -> Value:
    taken, rest = _front(self, advanced)
    if len(taken) == 1:
        (dim,) = taken
        place = advanced[dim]
        assert place is not None
        return g.op("Gather", self, g.cast(place, INT64), axis=dim)
    places, rank = _places(g, advanced)
    front = g.transpose(self, [*taken, *rest]) if taken != list(range(len(taken))) else self
    found = g.op("GatherND", front, places)
    adjacent = taken == list(range(taken[0], taken[0] + len(taken)))
    before = sum(dim < taken[0] for dim in rest) if adjacent else 0
    if not before:
        return found
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))]
    return g.transpose(found, order)


@converter("index_put")
def index_put(
    g: Graph, call: Result, self: Value, advanced: Sequence[Value | None], indices: Any, values: Value,
    accumulate: bool,
) -> Value:  # fmt: skip
    taken, rest = _front(self, advanced)
    places, rank = _places(g, advanced)
    order = [*taken, *rest]
    front = g.transpose(self, order)
    adjacent = taken == list(range(taken[0], taken[0] + len(taken)))
    before = sum(dim < taken[0] for dim in rest) if adjacent else 0
    sizes = self.shape or ()
    shape = g.op("Shape", places, dtype=INT64, end=-1)
    if before:  # the positions' dimensions stand between others in the values
        after = [g.ints([sizes[each] for each in rest[before:]])] if rest[before:] else []
        wanted = g.op("Concat", g.ints([sizes[each] for each in rest[:before]]), shape, *after, axis=0)
        spread = g.op("Expand", values, wanted)
        spread = g.transpose(
            spread, [*range(before, before + rank), *range(before), *range(before + rank, rank + len(rest))]
        )
    else:
        wanted = g.op("Concat", shape, g.ints([sizes[each] for each in rest]), axis=0) if rest else shape
        spread = g.op("Expand", values, wanted)
    made = _scatter_nd(g, front, places, spread, accumulate)
    return g.transpose(made, [order.index(each) for each in range(self.rank)])


def _scatter_nd(g: Graph, target: Value, places: Value, values: Value, accumulate: bool) -> Value:
    return g.op("ScatterND", target, places, values, reduction="add" if accumulate else None)


@converter("gather")
def gather(g: Graph, call: Result, self: Value, dim: int, index: Value) -> Value:
    if not self.rank:
        return g.op("Identity", self)
    return g.op("GatherElements", self, g.cast(index, INT64), axis=dim)


@converter("index_select")
def index_select(g: Graph, call: Result, self: Value, dim: int, index: Value) -> Value:
    if not self.rank:
        return g.op("Identity", self)
    return g.op("Gather", self, index if index.rank else g.unsqueeze(index, 0), axis=dim)


@converter("embedding")
def embedding(g: Graph, call: Result, weight: Value, indices: Value, *ignored: Any) -> Value:
    return g.op("Gather", weight, indices, axis=0)


@converter("take")
def take(g: Graph, call: Result, self: Value, index: Value) -> Value:
    return g.op("Gather", g.flat(self), index, axis=0)


@converter("put")
def put(g: Graph, call: Result, self: Value, index: Value, source: Value, accumulate: bool) -> Value:
    reduction = "add" if accumulate else None
    made = g.op("ScatterElements", g.flat(self), g.flat(index), g.flat(source), axis=0, reduction=reduction)
    return g.reshape(made, call.shape)


# ----- scattering -----------------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def _scattered(g: Graph, self: Value, dim: int, index: Value, src: Value, reduction: str | None) -> Value:
    if not self.rank:
        return g.reshape(_scattered(g, _line(g, self), 0, _line(g, index), _line(g, src), reduction), [])
    if src.shape is not None and src.shape != index.shape:  # only as much as there are positions
        count = self.rank
        src = g.op("Slice", src, g.ints([0] * count), g.shape(index), g.ints(list(range(count))))
    return g.op("ScatterElements", self, g.cast(index, INT64), src, axis=dim, reduction=reduction)


def _line(g: Graph, value: Value) -> Value:
    return Value(g.flat(value).name, value.dtype, (1,))


@converter("scatter_src", "scatter_add", "scatter_src_reduce")
def scatter(g: Graph, call: Result, self: Value, dim: int, index: Value, src: Value, reduce: str = "") -> Value:
    reduction = "add" if call.op == "scatter_add" else _REDUCTIONS.get(reduce)
    return _scattered(g, self, dim, index, src, reduction)


@converter("scatter_value", "scatter_value_reduce")
def scatter_value(g: Graph, call: Result, self: Value, dim: int, index: Value, value: Any, reduce: str = "") -> Value:
    src = g.op("Expand", beside(g, value, call.dtype), g.shape(index))
    return _scattered(g, self, dim, index, src, _REDUCTIONS.get(reduce))


@converter("scatter_reduce")
def scatter_reduce(
    g: Graph, call: Result, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool
) -> Value:
    if reduce == "mean":
        kept = self if include_self else _without(g, self, dim, index, "sum")
        total = _scattered(g, kept, dim, index, src, "add")
        ones = g.op("Expand", g.const(1, self.dtype), g.shape(self))
        one = g.op("Expand", g.const(1, self.dtype), g.shape(index))
        base = ones if include_self else g.op("Mul", ones, 0)
        base.shape = self.shape
        counts = _scattered(g, base, dim, index, one, "add")
        if not include_self:
            counts = g.op("Max", counts, 1)
        return g.op("Div", total, counts)
    kept = self if include_self else _without(g, self, dim, index, reduce)
    return _scattered(g, kept, dim, index, src, _REDUCTIONS[reduce])


def _without(g: Graph, self: Value, dim: int, index: Value, reduce: str) -> Value:
    """What is overwritten starts from the neutral element."""
    if self.dtype.kind == "f":
        start: Any = {"sum": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}[reduce]
    else:
        limits = np.iinfo(self.dtype)
        start = {"sum": 0, "prod": 1, "amax": limits.min, "amin": limits.max}[reduce]
    src = g.op("Expand", g.const(start, self.dtype), g.shape(index))
    made = _scattered(g, self, dim, index, src, None)
    made.shape = self.shape
    return made


def _along(g: Graph, dim: int, index: Value, like: Value) -> Value:
    """Positions along one dimension, repeated over the others."""
    rank = like.rank
    after = rank - 1 - dim % rank
    line = index if index.rank else g.unsqueeze(index, 0)
    shaped = g.unsqueeze(line, *range(1, after + 1)) if after else line
    return g.op("Expand", g.cast(shaped, INT64), g.shape(like))


@converter("index_add", "index_copy", "index_reduce")
def index_add(g: Graph, call: Result, self: Value, dim: int, index: Value, source: Value, *options: Any) -> Value:
    if not self.rank or source.rank != self.rank:
        raise Unsupported("positions in a tensor without dimensions")
    places = Value(_along(g, dim, index, source).name, INT64, source.shape)
    if call.op == "index_reduce":
        return scatter_reduce(g, call, self, dim, places, source, *options)
    if call.op == "index_copy":
        return _scattered(g, self, dim, places, source, None)
    alpha = options[0]
    if alpha != 1:
        source = Value(g.op("Mul", source, alpha).name, source.dtype, source.shape)
    return _scattered(g, self, dim, places, source, "add")


@converter("index_fill_number", "index_fill_tensor")
def index_fill(g: Graph, call: Result, self: Value, dim: int, index: Value, value: Any) -> Value:
    hits = g.op("Equal", g.count_up((self.shape or ())[dim]), g.unsqueeze(g.cast(index, INT64), -1), dtype=bool)
    hit = g.cast(g.reduce("ReduceMax", g.cast(hits, np.int32), [0], False), BOOL)
    after = self.rank - 1 - dim % self.rank
    mask = g.unsqueeze(hit, *range(1, after + 1)) if after else hit
    return g.op("Where", mask, beside(g, value, call.dtype), self, dtype=call.dtype)


@converter("select_scatter")
def select_scatter(g: Graph, call: Result, self: Value, src: Value, dim: int, index: int) -> Value:
    on = g.op("Equal", g.count_up((self.shape or ())[dim]), index, dtype=bool)
    after = self.rank - 1 - dim % self.rank
    mask = g.unsqueeze(on, *range(1, after + 1)) if after else on
    return g.op("Where", mask, g.unsqueeze(g.cast(src, self.dtype), dim), self, dtype=self.dtype)


@converter("slice_scatter")
def slice_scatter(
    g: Graph, call: Result, self: Value, src: Value, dim: int, start: int | None, end: int | None, step: int
) -> Value:
    size = (self.shape or ())[dim]
    first = 0 if start is None else start
    count = (src.shape or ())[dim]
    line = g.op("Add", g.op("Mul", g.count_up(count), step), first + size if first < 0 else first)
    places = _along(g, dim, Value(line.name, INT64, (count,)), src)
    return g.op("ScatterElements", self, places, g.cast(src, self.dtype), axis=dim)


@converter("diagonal_scatter")
def diagonal_scatter(g: Graph, call: Result, self: Value, src: Value, offset: int, dim1: int, dim2: int) -> Value:
    from .shape import diag_embed

    *_, first, second = (self.shape or ()) if self.rank == 2 else (0, 0, 0)
    if self.rank != 2 or first != second:
        raise Unsupported("diagonals of anything but one square matrix")
    line = Value(src.name, src.dtype, src.shape)
    wide = diag_embed(g, call, line, offset, dim1, dim2)
    rows, columns = g.count_up(first), g.count_up(second)
    on = g.op("Equal", g.op("Sub", columns, g.unsqueeze(rows, 1)), offset, dtype=bool)
    return g.op("Where", on, wide, self, dtype=self.dtype)


@converter("masked_scatter")
def masked_scatter(g: Graph, call: Result, self: Value, mask: Value, source: Value) -> Value:
    wide = g.op("Expand", mask, g.shape(self)) if mask.shape != self.shape else mask
    count = g.op("Sub", g.op("CumSum", g.cast(g.flat(wide), INT64), g.const(0, INT64)), 1)
    taken = g.op("Gather", g.flat(source), g.op("Max", count, 0), axis=0)
    return g.op("Where", wide, g.reshape(taken, call.shape), self, dtype=self.dtype)


@converter("one_hot")
def one_hot(g: Graph, call: Result, self: Value, num_classes: int) -> Value:
    ends = g.const(np.array([0, 1], np.int64))
    return g.op("OneHot", self, g.scalar(call.shape[-1]), ends, axis=-1)


@converter("unravelled")
def unravelled(g: Graph, call: Result, self: Value, sizes: Sequence[int]) -> list[Value]:
    parts = []
    for position, size in enumerate(sizes):
        inner = product(list(sizes[position + 1 :]))
        parts.append(g.op("Mod", g.op("Div", g.cast(self, INT64), inner), size))
    return parts
