"""Calls that arguments drawn by their types do not make: `written.txt` has them one by one, as Python.

`T(2, 3)` is a tensor of numbers, `P(2, 3)` one of numbers above zero, `I(1, 2)` one of whole numbers. What an operator
with `out=` or in place needs follows from the call of its functional form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch as pytorch

from .calls import Call

FILE = Path(__file__).with_suffix(".txt")

_COUNTED = itertools.count(1)


def _drawn(*shape: int, low: float, high: float) -> pytorch.Tensor:
    generator = pytorch.Generator().manual_seed(next(_COUNTED))
    return (pytorch.rand(*shape, generator=generator) * (high - low) + low).mul(100).round().div(100)


def _matrix(layout: str, **sizes: Any) -> pytorch.Tensor:
    dense = _drawn(4, 6, low=-2, high=2)
    dense[dense.abs() < 0.8] = 0
    return getattr(dense, f"to_sparse{layout}")(**sizes)


def _positive_definite(size: int) -> pytorch.Tensor:
    part = _drawn(size, size, low=-1, high=1)
    return part @ part.mT + pytorch.eye(size)


_PLACES: dict[str, Any] = {
    "T": lambda *shape: _drawn(*shape, low=-2, high=2),
    "P": lambda *shape: _drawn(*shape, low=0.1, high=2),
    "I": lambda *values: pytorch.tensor(values),
    "I32": lambda *values: pytorch.tensor(values, dtype=pytorch.int32),
    "M": lambda *values: pytorch.tensor(values, dtype=pytorch.bool),
    "S": lambda: _matrix(""),
    "CSR": lambda: _matrix("_csr"),
    "CSC": lambda: _matrix("_csc"),
    "BSR": lambda: _matrix("_bsr", blocksize=(2, 2)),
    "torch": pytorch,
    "spd": _positive_definite,
}


def written() -> Iterator[Call]:
    """The calls of the list."""
    for line in FILE.read_text().splitlines():
        name, _, arguments = line.partition("(")
        operator = name if "::" in name else f"aten::{name}"

        def made(*args: Any, operator: str = operator, **kwargs: Any) -> Call:
            return Call(operator, args, kwargs)

        yield eval(f"made({arguments}", {**_PLACES, "made": made})
