"""Products with something added to them, in one kernel: linear layers above all. None: the reference runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._core.arrays.quick import name_of
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty, form_of, of_form
from ..linalg import blas
from ..linalg.blaslt import TYPES, Matrix, Product, Refused
from ..linalg.fixed_order import rows_product
from ..linalg.products import aligned, dense_rows, laid_out
from ..runtime.plans import of_level

_plans: dict[Any, Product | None] = of_level({})
_calls: dict[Any, tuple[Callable[..., None], Any]] = of_level({})
"""For matrices that lie well and a row that is added, the plan, and the form of the result."""
_MOST_CALLS = 4096
_ALIGNED = 15


def addmm(self: DeviceArray, mat1: DeviceArray, mat2: DeviceArray, beta: Any, alpha: Any) -> DeviceArray | None:
    """`beta * self + alpha * mat1 @ mat2`, added up in float32 and rounded once."""
    call = mat1.layout, mat2.layout, self.layout, CHOICES.shortened_products
    known = _calls.get(call) if alpha == 1 == beta else None
    if known is not None and not (mat1.pointer | mat2.pointer | self.pointer) & _ALIGNED:
        prepared, form = known
        result = of_form(form)
        prepared(result, mat1, mat2, self.pointer, 1, 0.0)
        return result
    if REPRODUCIBILITY.product is not None:
        return _in_order(call, self, mat1, mat2) if alpha == 1 == beta else None
    dtype = mat1.form.dtype
    if not (dtype == mat2.form.dtype == self.form.dtype) or name_of(dtype) not in TYPES:
        return None
    left, right = laid_out(mat1), laid_out(mat2)
    (rows, inner), columns = left.form.shape, right.form.shape[1]
    if not (rows and inner and columns) or isinstance(alpha, complex) or isinstance(beta, complex):
        return None
    biased = beta == 1 and alpha == 1 and self.form.shape == (columns,) and self.form.flags.c_contiguous
    if (left.pointer | right.pointer | (self.pointer if biased else 0)) & _ALIGNED:
        return None
    key = dtype, rows, inner, columns, _placed(left.form), _placed(right.form), biased, CHOICES.shortened_products
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plans[key] = _planned(name_of(dtype), *key[1:])
    if plan is None:
        return None
    result = empty((rows, columns), dtype)
    if not biased and beta != 0:
        result[...] = self
    plan(result, left, right, self.pointer, alpha, 0.0 if biased else beta)
    if biased and left is mat1 and right is mat2:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        _calls[call] = plan, result.form
    return result


def _in_order(call: Any, row: DeviceArray, mat1: DeviceArray, mat2: DeviceArray) -> DeviceArray | None:
    """`mat1 @ mat2 + row`, each element in an order that does not depend on the batch."""
    (rows, inner), columns, dtype = mat1.form.shape, mat2.form.shape[1], mat1.form.dtype
    if not (dtype == mat2.form.dtype == row.form.dtype) or name_of(dtype) not in _IN_ORDER:
        return None
    if not (rows and inner and columns) or row.form.shape != (columns,) or not row.form.flags.c_contiguous:
        return None
    left, right, shift = dense_rows(mat1), aligned(laid_out(mat2)), aligned(row)
    form = form_of((rows, columns), dtype)
    multiply = rows_product(form, left.form, right.form, biased=True)

    def prepared(result: DeviceArray, left: DeviceArray, right: DeviceArray, row: int, *factors: float) -> None:
        multiply(result.pointer, left.pointer, right.pointer, row)

    result = of_form(form)
    prepared(result, left, right, shift.pointer)
    if left is mat1 and right is mat2:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        _calls[call] = prepared, form
    return result


_IN_ORDER = frozenset(("float16", "bfloat16", "float32", "float64"))
_calls_of_transposed: dict[Any, tuple[Callable[..., None], Any]] = of_level({})


def addmm_of_transposed(
    self: DeviceArray, mat1: DeviceArray, mat2: DeviceArray, beta: int, alpha: int
) -> DeviceArray | None:
    """`self + mat1 @ mat2.T`: a linear layer. `mat1` may have any number of dimensions before the last."""
    key = mat1.layout, mat2.layout, self.layout, CHOICES.shortened_products
    known = _calls_of_transposed.get(key)
    if known is None or (mat1.pointer | mat2.pointer | self.pointer) & _ALIGNED:
        if mat1.form.ndim != 2:
            if not mat1.form.flags.c_contiguous:
                if REPRODUCIBILITY.product is None:
                    return None
                mat1 = mat1.copy()  # whether a batch has gaps may depend on its size
            mat1 = mat1.reshape(math.prod(mat1.form.shape[:-1]), mat1.form.shape[-1])
        factor = mat2.T
        made = addmm(self, mat1, factor, beta, alpha)
        prepared = _calls.get((mat1.layout, factor.layout, self.layout, CHOICES.shortened_products))
        if prepared is not None:
            if len(_calls_of_transposed) >= _MOST_CALLS:
                _calls_of_transposed.clear()
            _calls_of_transposed[key] = prepared
        return made
    plan, form = known
    result = of_form(form)
    plan(result, mat1, mat2, self.pointer, 1, 0.0)
    return result


def _planned(*options: Any) -> Product | None:
    try:
        return Product(*options)
    except Refused:
        return None


def _placed(form: Any) -> Matrix:
    """How a matrix lies, for a library that counts columns first and is given the transposed problem."""
    turned, step, _ = blas.placed(form)
    return Matrix(bool(turned), step)
