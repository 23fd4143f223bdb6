"""New tensors: filled ones, copies into old ones, random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._element_types import onnx_type
from .._graph import INT64, Graph, Value
from .._sizes import Size
from ._table import Result, Unsupported, converter
from .pointwise import beside


def _filled(g: Graph, shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Value:
    number = 0 if value is None else value
    if isinstance(number, Size):
        return g.op("Expand", g.cast(g.scalar(number), dtype), g.ints(shape))
    if not any(isinstance(each, Size) for each in shape):
        return g.const(np.full([int(each) for each in shape], number).astype(dtype))
    return g.op("ConstantOfShape", g.ints(shape), dtype=dtype, value=np.array([number]).astype(dtype))


@converter("full")
def full(g: Graph, call: Result, shape: Sequence[int], value: Any, kind: Any) -> Value:
    return _filled(g, call.shape, value, call.dtype)


@converter("full_strided")
def full_strided(g: Graph, call: Result, shape: Sequence[int], strides: Any, value: Any, kind: Any) -> Value:
    return _filled(g, call.shape, value, call.dtype)


@converter("fill_number", "fill_tensor", "filled_with_number", "filled_with_tensor", "fill_")
def fill(g: Graph, call: Result, self: Value, value: Any) -> Value:
    number = beside(g, value, call.dtype)
    return g.op("Expand", number, g.ints(call.shape))


@converter("zero")
def zero(g: Graph, call: Result, self: Value) -> Value:
    return _filled(g, call.shape, 0, call.dtype)


@converter("copy_", "copy", "copy_across")
def copy(g: Graph, call: Result, self: Value, src: Value, *ignored: Any) -> Value:
    made = g.cast(src, call.dtype)
    return made if src.shape == call.shape else g.expand(made, call.shape)


# ----- what training changes ------------------------------------------------------------------------------------------


@converter("move_running_statistics")
def move_running_statistics(
    g: Graph, call: Result, mean: Value, var: Value, new_mean: Value, new_var: Value, momentum: float, size: int
) -> list[Value]:
    count = size // max(int((var.shape or (1,))[0]), 1)
    over = g.op("Div", g.cast(g.scalar(count), var.dtype), g.cast(g.scalar(count - 1), var.dtype))
    moved = []
    for old, new in ((mean, new_mean), (var, g.op("Mul", new_var, over))):
        moved.append(g.op("Add", g.op("Mul", old, 1 - momentum), g.op("Mul", g.cast(new, old.dtype), momentum)))
    return moved


@converter("average_running_statistics")
def average_running_statistics(g: Graph, call: Result, running: Value, moved: Value, batch: int) -> Value:
    return g.reduce("ReduceMean", g.reshape(moved, [batch, *(running.shape or ())]), [0], False)


# ----- random numbers -------------------------------------------------------------------------------------------------


def _uniform(g: Graph, call: Result, low: float = 0.0, high: float = 1.0) -> Value:
    shape = g.op("ConstantOfShape", g.ints(call.shape), dtype=call.dtype, value=np.zeros(1, call.dtype))
    return g.op("RandomUniformLike", shape, low=float(low), high=float(high))


@converter("uniform_")
def uniform(g: Graph, call: Result, self: Value, generator: Any, low: float = 0.0, high: float = 1.0) -> Value:
    return _uniform(g, call, low, high)


def _normal(g: Graph, shape: Sequence[int], dtype: np.dtype[Any]) -> Value:
    zeros = g.op("ConstantOfShape", g.ints(shape), dtype=dtype, value=np.zeros(1, dtype))
    return g.op("RandomNormalLike", zeros)


@converter("normal_")
def normal(g: Graph, call: Result, self: Value, generator: Any, mean: float = 0.0, std: float = 1.0) -> Value:
    return g.op("Add", g.op("Mul", _normal(g, call.shape, call.dtype), float(std)), float(mean))


@converter("normal_around", "normal_of_widths", "normal_each")
def normal_around(g: Graph, call: Result, mean: Any, std: Any, generator: Any) -> Value:
    numbers = g.op("Mul", _normal(g, call.shape, call.dtype), beside(g, std, call.dtype))
    return g.op("Add", numbers, beside(g, mean, call.dtype))


@converter("bernoulli_number_", "bernoulli_tensor_")
def bernoulli_(g: Graph, call: Result, self: Value, generator: Any, p: Any = 0.5) -> Value:
    below = np.dtype(np.float32)
    shape = g.op("ConstantOfShape", g.ints(call.shape), dtype=below, value=np.zeros(1, below))
    return g.cast(g.op("Less", g.op("RandomUniformLike", shape), beside(g, p, below), dtype=bool), call.dtype)


@converter("bernoulli")
def bernoulli(g: Graph, call: Result, self: Value, generator: Any) -> Value:
    return g.op("Bernoulli", self)


@converter("bernoulli_everywhere")
def bernoulli_everywhere(g: Graph, call: Result, self: Value, p: float, generator: Any) -> Value:
    return bernoulli_(g, call, self, generator, p)


@converter("exponential_")
def exponential(g: Graph, call: Result, self: Value, generator: Any, rate: float = 1.0) -> Value:
    return g.op("Div", g.op("Neg", g.op("Log", _uniform(g, call, 1e-7))), float(rate))


@converter("log_normal_")
def log_normal(g: Graph, call: Result, self: Value, generator: Any, mean: float = 1.0, std: float = 2.0) -> Value:
    return g.op("Exp", normal(g, call, self, generator, mean, std))


@converter("cauchy_")
def cauchy(g: Graph, call: Result, self: Value, generator: Any, median: float = 0.0, sigma: float = 1.0) -> Value:
    angle = g.op("Mul", g.op("Sub", _uniform(g, call), 0.5), math.pi)
    return g.op("Add", g.op("Mul", g.op("Tan", angle), float(sigma)), float(median))


@converter("random_between_")
def random_between(g: Graph, call: Result, self: Value, generator: Any, low: int, high: int | None) -> Value:
    if high is None:
        raise Unsupported("random numbers over the whole range of a dtype; give an upper bound")
    wide = Result(call.op, [np.dtype(np.float32)], call.shapes, call.transposed)
    return g.cast(g.op("Floor", _uniform(g, wide, low, high)), call.dtype)


@converter("randperm_")
def randperm(g: Graph, call: Result, self: Value, generator: Any, n: int) -> Value:
    wide = Result(call.op, [np.dtype(np.float32)], call.shapes, call.transposed)
    _, order = g.ops("TopK", 2, _uniform(g, wide), g.ints(call.shape), dtype=INT64, axis=0)
    return g.cast(order, call.dtype)


@converter("multinomial")
def multinomial(g: Graph, call: Result, self: Value, num_samples: int, replacement: bool, generator: Any) -> Value:
    rows = self if self.rank == 2 else g.unsqueeze(self, 0)
    if replacement or num_samples == 1:
        drawn = g.op("Multinomial", g.op("Log", rows), dtype=INT64, sample_size=int(num_samples), **_as_int64())
    else:  # the largest of keys that grow with the weight, each drawn alone
        noise = g.op("RandomUniformLike", rows, low=1e-7, high=1.0)
        keys = g.op("Div", g.op("Log", noise), rows)
        _, drawn = g.ops("TopK", 2, keys, g.ints([num_samples]), dtype=INT64, axis=-1)
    return g.reshape(drawn, call.shape)


def _as_int64() -> dict[str, Any]:
    return {"dtype_": onnx_type(np.int64)}


@converter("native_dropout")
def native_dropout(g: Graph, call: Result, self: Value, mask: Value, p: float, train: bool) -> list[Value]:
    if not train:
        return [g.op("Identity", self), g.cast(mask, bool)]
    kept = g.cast(mask, self.dtype)
    return [g.op("Mul", g.op("Mul", self, kept), 1 / (1 - p) if p < 1 else 0.0), mask]
