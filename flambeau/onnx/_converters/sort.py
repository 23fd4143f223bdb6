"""Orders: sorting, the largest elements, medians, unique elements, places where something is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._graph import BOOL, INT64, Graph, Value
from ._table import Result, converter


def _numbers(g: Graph, self: Value) -> Value:
    return g.cast(self, np.int32) if self.dtype in (BOOL, np.dtype(np.uint8), np.dtype(np.int8), np.int16) else self


def _top(g: Graph, self: Value, count: Value, dim: int, largest: bool) -> list[Value]:
    values, places = g.ops("TopK", 2, _numbers(g, self), count, axis=dim, largest=int(largest), sorted=1)
    places.dtype = INT64
    return [g.cast(values, self.dtype), places]


@converter("sort", "stable_sort")
def sort(g: Graph, call: Result, self: Value, dim: int, descending: bool) -> list[Value]:
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    return _top(g, self, g.ints([(self.shape or ())[dim]]), dim, descending)


@converter("topk")
def topk(g: Graph, call: Result, self: Value, k: int, dim: int, largest: bool) -> list[Value]:
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    return _top(g, self, g.ints([k]), dim, largest)


def _ranked(g: Graph, self: Value, dim: int, rank: int, keepdim: bool) -> list[Value]:
    """The element that stands at `rank` when sorted, and its place."""
    values, places = _top(g, self, g.ints([rank + 1]), dim, False)
    last = g.scalar(rank)
    picked = [g.op("Gather", each, last, axis=dim) for each in (values, places)]
    return [g.unsqueeze(each, dim) for each in picked] if keepdim else picked


@converter("kthvalue")
def kthvalue(g: Graph, call: Result, self: Value, k: int, dim: int, keepdim: bool) -> list[Value]:
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    return _ranked(g, self, dim, k - 1, keepdim)


@converter("median_dim")
def median(g: Graph, call: Result, self: Value, dim: int, keepdim: bool) -> list[Value]:
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    return _ranked(g, self, dim, ((self.shape or ())[dim] - 1) // 2, keepdim)


@converter("median_all")
def median_of_all(g: Graph, call: Result, self: Value) -> Value:
    count = 1
    for each in self.shape or ():
        count = each * count
    return _ranked(g, g.flat(self), 0, (count - 1) // 2, False)[0]


@converter("nonzero")
def nonzero(g: Graph, call: Result, self: Value) -> Value:
    found = g.op("NonZero", self if self.dtype != np.int16 else g.cast(self, INT64), dtype=INT64)
    return g.transpose(found, [1, 0])


@converter("masked_select")
def masked_select(g: Graph, call: Result, self: Value, mask: Value) -> Value:
    if self.shape != mask.shape:
        shape = g.op("Shape", g.op("Or", mask, g.op("Expand", g.const(False), g.shape(self))), dtype=INT64)
        self, mask = g.op("Expand", self, shape), g.op("Expand", mask, shape)
    return g.op("Compress", g.flat(self), g.flat(mask), axis=0)


@converter("unique")
def unique(g: Graph, call: Result, self: Value, dim: int | None) -> list[Any]:
    wide = _numbers(g, self)
    values, _, inverse, counts = g.ops("Unique", 4, wide, axis=dim, sorted=1)
    inverse.dtype = counts.dtype = INT64
    if dim is None:
        inverse = g.reshape(inverse, self.shape or ())
    return [g.cast(values, self.dtype), inverse, counts]


@converter("searchsorted")
def searchsorted(g: Graph, call: Result, sorted_sequence: Value, values: Value, right: bool, dtype: Any) -> Value:
    """How many of the sequence stand before."""
    line = sorted_sequence
    if line.rank > 1:
        line = g.unsqueeze(line, -2)
    number = g.unsqueeze(values, -1) if values.rank else values
    before = g.op("LessOrEqual" if right else "Less", g.cast(line, values.dtype), number, dtype=bool)
    return g.cast(g.reduce("ReduceSum", g.cast(before, INT64), [-1], False), call.dtype)


@converter("bincount")
def bincount(g: Graph, call: Result, self: Value, weights: Value | None, minlength: int) -> Value:
    highest = g.op("Add", g.reduce("ReduceMax", g.cast(self, INT64), None, False), 1)
    length = g.op("Max", highest, g.scalar(minlength))
    bins = g.op("Range", g.const(0, INT64), length, g.const(1, INT64))
    hits = g.op("Equal", g.cast(self, INT64), g.unsqueeze(bins, 1), dtype=bool)
    if weights is None:
        return g.reduce("ReduceSum", g.cast(hits, INT64), [1], False)
    return g.reduce("ReduceSum", g.where(hits, g.cast(weights, call.dtype), 0), [1], False)
