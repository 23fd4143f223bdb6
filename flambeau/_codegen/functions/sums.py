"""Logarithms of sums of exponentials."""

from __future__ import annotations

import math

from ..build import Builder, Value
from .exponential import exp, exp2
from .logarithm import log1p


def logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)). Where it is nearly 0, its error is a few units of the larger operand's last place."""
    larger, difference, same = _ordered(b, x, y)
    return b.select(same, larger + math.log(2), larger + log1p(b, exp(b, difference)))


def logaddexp2(b: Builder, x: Value, y: Value) -> Value:
    """log2(2**x + 2**y), with errors like those of `logaddexp`."""
    larger, difference, same = _ordered(b, x, y)
    return b.select(same, larger + 1.0, b.fma(log1p(b, exp2(b, difference)), 1 / math.log(2), larger))


def _ordered(b: Builder, x: Value, y: Value) -> tuple[Value, Value, Value]:
    """The larger operand, how far the other one is below it, and whether they are equal, perhaps both infinite."""
    x, y = b.matched(x, y)
    return b.maximum(x, y), -b.abs(x - y), x == y
