"""Special functions that have a short form in ONNX's operators."""

from __future__ import annotations

import math

from .._graph import Graph, Value
from ._table import Result, converter


@converter("special_entr")
def entr(g: Graph, call: Result, self: Value) -> Value:
    value = g.cast(self, call.dtype)
    inside = g.op("Neg", g.op("Mul", value, g.op("Log", value)))
    inside = g.where(g.op("Equal", value, 0, dtype=bool), 0, inside)
    return g.where(g.op("Less", value, 0, dtype=bool), -math.inf, inside)


@converter("erfinv")
def erfinv(g: Graph, call: Result, self: Value) -> Value:
    """Winitzki's approximation and three steps of Newton's method."""
    x = g.cast(self, call.dtype)
    log = g.op("Log", g.op("Mul", g.op("Sub", g.const(1, x.dtype), x), g.op("Add", x, 1)))
    a = 0.147
    first = g.op("Add", g.op("Mul", log, 0.5), 2 / (math.pi * a))
    inside = g.op("Sub", g.op("Sqrt", g.op("Sub", g.op("Mul", first, first), g.op("Div", log, a))), first)
    y = g.op("Mul", g.op("Sign", x), g.op("Sqrt", inside))
    for _ in range(3):
        error = g.op("Sub", g.op("Erf", y), x)
        slope = g.op("Mul", g.op("Exp", g.op("Neg", g.op("Mul", y, y))), 2 / math.sqrt(math.pi))
        y = g.op("Sub", y, g.op("Div", error, slope))
    edge = g.op("Equal", g.op("Abs", x), 1, dtype=bool)
    return g.where(edge, g.op("Mul", g.op("Sign", x), math.inf), y)


@converter("special_log_ndtr")
def log_ndtr(g: Graph, call: Result, self: Value) -> Value:
    value = g.cast(self, call.dtype)
    whole = g.op("Mul", g.op("Add", g.op("Erf", g.op("Mul", value, math.sqrt(0.5))), 1), 0.5)
    return g.op("Log", whole)
