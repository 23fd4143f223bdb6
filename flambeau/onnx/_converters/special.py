"""Special functions that have a short form in ONNX's operators."""

from __future__ import annotations

import math

from .._graph import Graph, Value
from ._table import Result, converter


@converter("special_log_ndtr")
def log_ndtr(g: Graph, call: Result, self: Value) -> Value:
    value = g.cast(self, call.dtype)
    whole = g.op("Mul", g.op("Add", g.op("Erf", g.op("Mul", value, math.sqrt(0.5))), 1), 0.5)
    return g.op("Log", whole)
