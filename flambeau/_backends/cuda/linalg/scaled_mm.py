"""Products of matrices of 8-bit floats, each with a scale, by the library. None: it does not do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty
from ..runtime.plans import of_level
from .blaslt import EIGHT_BITS, TYPES, Matrix, Product, Refused

_PACK = 16
"""So many of them are read at a time: rows and columns begin at multiples of it."""
_plans: dict[Any, Product | None] = of_level({})


def product(
    left: DeviceArray, right: DeviceArray, of_left: DeviceArray, of_right: DeviceArray, dtype: np.dtype[Any],
    quick_sums: bool,
) -> DeviceArray | None:  # fmt: skip
    """`left @ right`, by rows and by columns, times the numbers `of_left` and `of_right`, added up in float32."""
    if REPRODUCIBILITY.product is not None:
        return None
    names = name_of(left.form.dtype), name_of(right.form.dtype)
    if not EIGHT_BITS.keys() >= set(names) or set(names) == {"float8_e5m2"} or name_of(dtype) not in TYPES:
        return None
    if of_left.form.size != 1 or of_right.form.size != 1:
        return None
    (rows, inner), columns = left.form.shape, right.form.shape[1]
    if not (left.form.flags.c_contiguous and right.form.T.flags.c_contiguous) or not (rows and inner and columns):
        return None
    if (left.pointer | right.pointer | inner | columns) % _PACK:
        return None
    key = names, name_of(dtype), rows, inner, columns, quick_sums
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plans[key] = _planned(*key)
    if plan is None:
        return None
    result = empty((rows, columns), dtype)
    plan.scaled(result, left, right, of_left.pointer, of_right.pointer)
    return result


def _planned(
    names: tuple[str, str], dtype: str, rows: int, inner: int, columns: int, quick_sums: bool
) -> Product | None:
    left, right = Matrix(False, inner), Matrix(True, inner)
    try:
        return Product(dtype, rows, inner, columns, left, right, False, False, names, quick_sums)
    except Refused:
        return None
