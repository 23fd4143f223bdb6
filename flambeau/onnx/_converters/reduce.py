"""Reductions, running sums and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._graph import BOOL, INT64, Graph, Value
from .._sizes import product
from ._table import Result, Unsupported, converter


def _dims(self: Value, dim: Any) -> list[int] | None:
    """The dimensions to reduce; None stands for all."""
    if dim is None:
        return None
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [each % max(self.rank, 1) for each in dims] if self.rank else None


def _wide(g: Graph, self: Value, dtype: np.dtype[Any]) -> Value:
    """Narrow integers are not summed by all runtimes."""
    return g.cast(self, INT64 if dtype.kind in "iub" else dtype)


@converter("sum_all", "prod_all", "mean_all")
def reduce_all(g: Graph, call: Result, self: Value, dtype: Any) -> Value:
    kind = {"sum_all": "ReduceSum", "prod_all": "ReduceProd", "mean_all": "ReduceMean"}[call.op]
    return g.cast(g.reduce(kind, _wide(g, self, call.dtype), None, False), call.dtype)


@converter("sum_dim", "prod_dim", "mean_dim")
def reduce_dim(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool, dtype: Any) -> Value:
    kind = {"sum_dim": "ReduceSum", "prod_dim": "ReduceProd", "mean_dim": "ReduceMean"}[call.op]
    return g.cast(g.reduce(kind, _wide(g, self, call.dtype), _dims(self, dim), keepdim), call.dtype)


@converter("nansum")
def nansum(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool, dtype: Any) -> Value:
    value = g.cast(self, call.dtype)
    if value.dtype.kind == "f":
        value = g.where(g.op("IsNaN", value, dtype=bool), 0, value)
    return g.reduce("ReduceSum", value, _dims(self, dim), keepdim)


@converter("amax", "amin")
def extreme(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool) -> Value:
    dims = _dims(self, dim)
    return _extreme(g, "ReduceMax" if call.op == "amax" else "ReduceMin", self, dims or None, keepdim)


def _extreme(g: Graph, kind: str, self: Value, dims: list[int] | None, keepdim: bool) -> Value:
    if self.dtype == BOOL:
        return g.cast(g.reduce(kind, g.cast(self, np.int32), dims, keepdim), BOOL)
    return g.reduce(kind, self, dims, keepdim)


@converter("max_all", "min_all")
def extreme_of_all(g: Graph, call: Result, self: Value) -> Value:
    return _extreme(g, "ReduceMax" if call.op == "max_all" else "ReduceMin", self, None, False)


@converter("aminmax")
def aminmax(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool) -> list[Value]:
    dims = _dims(self, dim)
    return [_extreme(g, kind, self, dims or None, keepdim) for kind in ("ReduceMin", "ReduceMax")]


@converter("max_dim", "min_dim")
def extreme_and_place(g: Graph, call: Result, self: Value, dim: int, keepdim: bool) -> list[Value]:
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    kind = "Max" if call.op == "max_dim" else "Min"
    numbers = g.cast(self, np.int32) if self.dtype == BOOL else self
    place = g.op(f"Arg{kind}", numbers, dtype=INT64, axis=dim, keepdims=int(keepdim))
    return [_extreme(g, f"Reduce{kind}", self, [dim % self.rank], keepdim), place]


@converter("argmax", "argmin")
def place_of_extreme(g: Graph, call: Result, self: Value, dim: int | None, keepdim: bool) -> Value:
    kind = "ArgMax" if call.op == "argmax" else "ArgMin"
    numbers = g.cast(self, np.int32) if self.dtype == BOOL else self
    if dim is None or not self.rank:
        return g.reshape(g.op(kind, g.flat(numbers), dtype=INT64, axis=0, keepdims=0), call.shape)
    return g.op(kind, numbers, dtype=INT64, axis=dim, keepdims=int(keepdim))


@converter("all", "any")
def all_any(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool) -> Value:
    numbers = g.cast(g.cast(self, BOOL), np.int32)
    made = g.reduce("ReduceMin" if call.op == "all" else "ReduceMax", numbers, _dims(self, dim) or None, keepdim)
    return g.cast(made, call.dtype)


@converter("count_nonzero")
def count_nonzero(g: Graph, call: Result, self: Value, dim: Any) -> Value:
    return g.reduce("ReduceSum", g.cast(g.cast(self, BOOL), INT64), _dims(self, dim), False)


@converter("logsumexp")
def logsumexp(g: Graph, call: Result, self: Value, dim: Any, keepdim: bool) -> Value:
    return g.reduce("ReduceLogSumExp", g.cast(self, call.dtype), _dims(self, dim), keepdim)


def _variance(g: Graph, self: Value, dim: Any, correction: float, keepdim: bool) -> tuple[Value, Value]:
    dims = _dims(self, dim) or None
    mean = g.reduce("ReduceMean", self, dims, True)
    gap = g.op("Sub", self, mean)
    sizes = self.shape or ()
    count = product([sizes[each] for each in dims] if dims else sizes)
    total = g.reduce("ReduceSum", g.op("Mul", gap, gap), dims, keepdim)
    number = g.op("Sub", g.cast(g.scalar(count), self.dtype), float(correction))
    variance = g.op("Div", total, g.op("Max", number, 0))
    return variance, mean if keepdim else g.reduce("ReduceMean", self, dims, False)


@converter("var", "std")
def var(g: Graph, call: Result, self: Value, dim: Any, correction: float, keepdim: bool) -> Value:
    variance = _variance(g, self, dim, correction, keepdim)[0]
    return variance if call.op == "var" else g.op("Sqrt", variance)


@converter("var_mean", "std_mean")
def var_mean(g: Graph, call: Result, self: Value, dim: Any, correction: float, keepdim: bool) -> list[Value]:
    variance, mean = _variance(g, self, dim, correction, keepdim)
    return [variance if call.op == "var_mean" else g.op("Sqrt", variance), mean]


# ----- norms ----------------------------------------------------------------------------------------------------------


@converter("vector_norm", "norm_along")
def vector_norm(g: Graph, call: Result, self: Value, ord: Any, dim: Any, keepdim: bool) -> Value:
    value, dims = g.cast(self, call.dtype), _dims(self, dim) or None
    size = g.op("Abs", value)
    if ord == 2:
        return g.reduce("ReduceL2", value, dims, keepdim)
    if ord == 1:
        return g.reduce("ReduceL1", value, dims, keepdim)
    if ord in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", size, dims, keepdim)
    if ord == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(size, BOOL), call.dtype), dims, keepdim)
    return g.op("Pow", g.reduce("ReduceSum", g.op("Pow", size, float(ord)), dims, keepdim), 1 / float(ord))


@converter("dist")
def dist(g: Graph, call: Result, self: Value, other: Value, p: float) -> Value:
    gap = g.op("Sub", self, other)
    return vector_norm(g, call, Value(gap.name, gap.dtype, call.shape), p, None, False)


@converter("renorm")
def renorm(g: Graph, call: Result, self: Value, p: float, dim: int, maxnorm: float) -> Value:
    dims = [each for each in range(self.rank) if each != dim % self.rank]
    norms = vector_norm(g, call, self, p, dims, True)
    factor = g.op("Div", g.const(maxnorm, self.dtype), g.op("Add", norms, 1e-7))
    return g.op("Mul", self, g.where(g.op("Greater", norms, maxnorm, dtype=bool), factor, 1))


@converter("normalised")
def weight_norm(g: Graph, call: Result, v: Value, g_: Value, dim: int) -> Value:
    dims = [each for each in range(v.rank) if each != dim % v.rank] if dim != -1 else None
    return g.op("Mul", v, g.op("Div", g_, g.reduce("ReduceL2", v, dims, True)))


@converter("list_norms")
def list_norms(g: Graph, call: Result, tensors: list[Value]) -> list[Value]:
    return [g.reduce("ReduceL2", each, None, False) for each in tensors]


# ----- running ones ---------------------------------------------------------------------------------------------------


@converter("cumsum")
def cumsum(g: Graph, call: Result, self: Value, dim: int, dtype: Any) -> Value:
    value = g.cast(self, call.dtype)
    return g.op("CumSum", value, g.scalar(dim)) if self.rank else value


@converter("cumprod")
def cumprod(g: Graph, call: Result, self: Value, dim: int, dtype: Any) -> Value:
    """The logarithms of the sizes are summed; signs and zeros are counted."""
    value = g.cast(self, call.dtype)
    if not self.rank:
        return value
    if value.dtype.kind != "f":
        raise Unsupported("products of integers along a dimension: convert them to float first")
    axis = g.scalar(dim)
    zero = g.op("Equal", value, 0, dtype=bool)
    logs = g.op("CumSum", g.op("Log", g.where(zero, 1, g.op("Abs", value))), axis)
    negative = g.op("CumSum", g.cast(g.op("Less", value, 0, dtype=bool), value.dtype), axis)
    sign = g.op("Sub", g.const(1, value.dtype), g.op("Mul", g.op("Mod", negative, 2.0, fmod=1), 2))
    zeros = g.op("CumSum", g.cast(zero, value.dtype), axis)
    size = g.op("Mul", g.op("Exp", logs), sign)
    return g.where(g.op("Greater", zeros, 0, dtype=bool), 0, size)


@converter("logcumsumexp")
def logcumsumexp(g: Graph, call: Result, self: Value, dim: int) -> Value:
    if not self.rank:
        return g.op("Identity", self)
    high = g.reduce("ReduceMax", self, [dim % self.rank], True)
    return g.op("Add", g.op("Log", g.op("CumSum", g.op("Exp", g.op("Sub", self, high)), g.scalar(dim))), high)


@converter("cummax", "cummin")
def running_extreme(g: Graph, call: Result, self: Value, dim: int) -> list[Value]:
    """Each place looks at all places before it: memory grows with the square of the dimension."""
    if not self.rank:
        return [g.op("Identity", self), g.const(0, INT64)]
    dim, high = dim % self.rank, call.op == "cummax"
    length = (self.shape or ())[dim]
    order = [*[each for each in range(self.rank) if each != dim], dim]
    last = g.transpose(self, order)
    places = g.count_up(length)
    seen = g.op("LessOrEqual", places, g.unsqueeze(places, 1), dtype=bool)
    lowest: Any = (-math.inf if high else math.inf) if self.dtype.kind == "f" else _limit(self.dtype, high)
    spread = g.where(seen, g.unsqueeze(last, -2), lowest)
    value = g.reduce("ReduceMax" if high else "ReduceMin", spread, [-1], False)
    place = g.op("ArgMax" if high else "ArgMin", spread, dtype=INT64, axis=-1, keepdims=0, select_last_index=1)
    back = [order.index(each) for each in range(self.rank)]
    return [g.transpose(value, back), g.transpose(place, back)]


def _limit(dtype: np.dtype[Any], lowest: bool) -> int:
    return int(np.iinfo(dtype).min if lowest else np.iinfo(dtype).max)


@converter("trace")
def trace(g: Graph, call: Result, self: Value, dtype: Any) -> Value:
    rows, columns = (g.count_up(each) for each in self.shape or ())
    on = g.op("Equal", g.unsqueeze(rows, 1), columns, dtype=bool)
    value = g.cast(self, call.dtype)
    return g.reduce("ReduceSum", g.where(on, value, 0), None, False)
