"""How much work is worth another thread: what parallel loops give one thread at least.

To wake a thread that sleeps takes its caller some microseconds, and longer than that may pass until it runs: on a
virtual machine whose processor rests, tens of microseconds. So a share is to take some ten microseconds of one thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from .build import Builder, Operand, Value

ELEMENTS = 32768
"""Elements that are read, combined and written. Work that takes longer for each element has a part of these."""
_FUNCTIONS = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "erfinv", "lgamma", "digamma",
))  # fmt: skip
"""Steps that take as long as some ten additions."""
MULTIPLICATIONS = 1 << 20
"""Multiplications in products of matrices."""


def steps_worth(b: Builder, work: Operand, amount: int = ELEMENTS) -> Value:
    """How many steps of a loop one thread should have at least, if a step is so much `work` of an `amount`."""
    return b.larger(b.integer(amount) // b.larger(b.integer(work), 1), 1)


def elements_worth(names: Iterable[str]) -> int:
    """How many elements one thread should have at least, if steps of these names are computed for each."""
    return ELEMENTS // 4 if any(name in _FUNCTIONS for name in names) else ELEMENTS
