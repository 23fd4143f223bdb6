"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._graph import Graph, Value
from ._table import Result, converter


@converter("leaky_relu")
def leaky_relu(g: Graph, call: Result, self: Value, negative_slope: float) -> Value:
    return g.op("LeakyRelu", self, alpha=float(negative_slope))


@converter("elu")
def elu(g: Graph, call: Result, self: Value, alpha: float, scale: float, input_scale: float) -> Value:
    if scale == 1 and input_scale == 1:
        return g.op("Elu", self, alpha=float(alpha))
    if input_scale == 1:
        return g.op("Selu", self, alpha=float(alpha), gamma=float(scale))
    low = g.op("Mul", g.op("Sub", g.op("Exp", g.op("Mul", self, input_scale)), 1), alpha)
    return g.op("Mul", g.where(g.op("Greater", self, 0, dtype=bool), self, low), scale)


@converter("celu")
def celu(g: Graph, call: Result, self: Value, alpha: float) -> Value:
    return g.op("Celu", self, alpha=float(alpha)) if self.dtype == np.float32 else _celu(g, self, alpha)


def _celu(g: Graph, self: Value, alpha: float) -> Value:
    low = g.op("Mul", g.op("Sub", g.op("Exp", g.op("Div", self, alpha)), 1), alpha)
    return g.where(g.op("Greater", self, 0, dtype=bool), self, low)


@converter("gelu")
def gelu(g: Graph, call: Result, self: Value, approximate: str) -> Value:
    if g.opset >= 20:
        return g.op("Gelu", self, approximate=approximate)
    half = g.op("Mul", self, 0.5)
    if approximate == "none":
        return g.op("Mul", half, g.op("Add", g.op("Erf", g.op("Mul", self, math.sqrt(0.5))), 1))
    cube = g.op("Mul", g.op("Mul", g.op("Mul", self, self), self), 0.044715)
    inner = g.op("Mul", g.op("Add", self, cube), math.sqrt(2 / math.pi))
    return g.op("Mul", half, g.op("Add", g.op("Tanh", inner), 1))


@converter("hardshrink", "softshrink")
def shrink(g: Graph, call: Result, self: Value, lambd: float) -> Value:
    return g.op("Shrink", self, lambd=float(lambd), bias=0.0 if call.op == "hardshrink" else float(lambd))


@converter("hardsigmoid")
def hardsigmoid(g: Graph, call: Result, self: Value) -> Value:
    return g.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@converter("hardswish")
def hardswish(g: Graph, call: Result, self: Value) -> Value:
    return g.op("HardSwish", self)


@converter("hardtanh")
def hardtanh(g: Graph, call: Result, self: Value, min_val: float, max_val: float) -> Value:
    return g.op("Clip", self, g.const(min_val, self.dtype), g.const(max_val, self.dtype))


@converter("mish")
def mish(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Mish", self)


@converter("prelu")
def prelu(g: Graph, call: Result, self: Value, weight: Value) -> Value:
    return g.op("PRelu", self, weight)


@converter("rrelu_mean")
def rrelu_mean(g: Graph, call: Result, self: Value, lower: float, upper: float, negative_slope: float) -> Value:
    return g.op("LeakyRelu", self, alpha=float(negative_slope))


@converter("silu")
def silu(g: Graph, call: Result, self: Value) -> Value:
    return g.op("Mul", self, g.op("Sigmoid", self))


@converter("softplus")
def softplus(g: Graph, call: Result, self: Value, beta: float, threshold: float) -> Value:
    if beta == 1:
        return g.op("Softplus", self)  # beyond the threshold both are the input itself, to the last digit
    return g.op("Div", g.op("Softplus", g.op("Mul", self, beta)), beta)


@converter("log_sigmoid")
def log_sigmoid(g: Graph, call: Result, self: Value) -> Any:
    return g.op("Neg", g.op("Softplus", g.op("Neg", self)))


@converter("threshold")
def threshold(g: Graph, call: Result, self: Value, threshold: float, value: float) -> Value:
    return g.where(g.op("Greater", self, threshold, dtype=bool), self, value)


@converter("glu")
def glu(g: Graph, call: Result, self: Value, dim: int) -> Value:
    left, right = g.ops("Split", 2, self, axis=dim, num_outputs=2)
    return g.op("Mul", left, g.op("Sigmoid", right))


@converter("logit")
def logit(g: Graph, call: Result, self: Value, eps: float | None) -> Value:
    value = g.cast(self, call.dtype)
    if eps is not None:
        value = g.op("Clip", value, g.const(eps, value.dtype), g.const(1 - eps, value.dtype))
    return g.op("Log", g.op("Div", value, g.op("Sub", g.const(1, value.dtype), value)))


@converter("softmax", "log_softmax")
def softmax(g: Graph, call: Result, self: Value, dim: int) -> Value:
    return g.op("Softmax" if call.op == "softmax" else "LogSoftmax", self, axis=dim)


@converter("safe_softmax")
def safe_softmax(g: Graph, call: Result, self: Value, dim: int) -> Value:
    """Rows that see nothing become zeros."""
    lowest = g.op("Equal", g.reduce("ReduceMax", self, [dim], True), -math.inf, dtype=bool)
    return g.where(lowest, 0, g.op("Softmax", self, axis=dim))
