"""Type promotion: which dtype the result of mixed operands has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import BOOL, COMPLEX, DEFAULTS, FLOAT, INTEGER, bool_, dtype, int64, promote_types
from ..._core.tensor import Tensor

Operand = Any
"""A tensor or a Python number."""
Number = Any
"""A Python number, which users may give as a tensor without dimensions or as a scalar of NumPy's."""


def scalar_category(value: Any) -> int:
    """The promotion category of a Python (or NumPy) number."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, np.integer)):
        return INTEGER
    if isinstance(value, (float, np.floating)):
        return FLOAT
    if isinstance(value, (complex, np.complexfloating)):
        return COMPLEX
    raise TypeError(f"expected a Tensor or a number, not {type(value).__name__}")


def is_number(value: Any) -> bool:
    """Whether `value` may stand where PyTorch takes a Python scalar."""
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def default_of_category(category: int) -> dtype:
    """The dtype that a Python number of `category` becomes."""
    return (bool_, int64, DEFAULTS.float, DEFAULTS.complex)[category]


def result_type_of(*operands: Operand) -> dtype:
    """The common dtype of tensors and numbers.

    Tensors with dimensions decide; 0-d tensors and Python numbers only raise the category (bool, integer, float,
    complex), each group adding to the one before.
    """
    groups: list[dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Tensor):
            rank = 0 if operand._array.ndim else 1
            candidate = operand._kind.dtype
        else:
            rank = 2
            candidate = default_of_category(scalar_category(operand))
        present = groups[rank]
        groups[rank] = candidate if present is None else promote_types(present, candidate)
    result: dtype | None = None
    for candidate_or_none in groups:
        if candidate_or_none is None:
            continue
        if result is None:
            result = candidate_or_none
        elif candidate_or_none.category > result.category:
            result = _raise_category(result, candidate_or_none)
    assert result is not None
    return result


def _raise_category(settled: dtype, raising: dtype) -> dtype:
    if raising.category == COMPLEX and settled.category == FLOAT:
        return settled.to_complex()  # the precision of the tensor that decides
    if settled is bool_ or raising.category == FLOAT:
        return promote_types(settled, raising)  # which refuses the 8-bit floats, and the wide unsigned types for bool
    return raising
