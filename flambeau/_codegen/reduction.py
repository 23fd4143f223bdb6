"""Reductions: how the elements of a dimension become one number, said once for all machines.

Two numbers are joined by an operation that programs know (`lower.py`, `cuda/elementwise.py`), beginning with what
changes nothing. What is joined is each element, or what a function in NumPy's terms makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .expr import Program, trace_body


class Reduction(NamedTuple):
    """How elements become one: the name of the operation that joins two, and what each of them stands for."""

    join: str
    summand: Callable[..., Any] | None = None
    arguments: int = 1
    """How many the summand takes: the element, and a number that is given for each result."""


REDUCTIONS = {
    "add": Reduction("add"),
    "multiply": Reduction("multiply"),
    "maximum": Reduction("maximum"),
    "minimum": Reduction("minimum"),
    "logical_and": Reduction("logical_and"),
    "logical_or": Reduction("logical_or"),
    "square": Reduction("add", lambda x: x * x),
    "deviation": Reduction("add", lambda x, centre: np.square(x - centre), 2),
    "present": Reduction("add", lambda x: np.where(x == x, x, 0)),
}
"""By name. "present" leaves NaN out, "deviation" sums squares of distances to a centre."""


def start_of(kind: str, dtype: str) -> float:
    """What changes nothing when it is joined with a number of type `dtype`."""
    join = REDUCTIONS[kind].join
    if join in ("add", "logical_or"):
        return 0
    if join in ("multiply", "logical_and"):
        return 1
    if dtype == "bool":
        return int(join == "minimum")
    if "float" in dtype:
        return float("-inf") if join == "maximum" else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if join == "maximum" else limits.max)


@cache
def summand_of(kind: str, dtype: str) -> Program | None:
    """What an element of type `dtype` stands for; None: itself."""
    reduction = REDUCTIONS[kind]
    return reduction.summand and trace_body(reduction.summand, [np.dtype(dtype)] * reduction.arguments)
