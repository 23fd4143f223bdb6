"""Products with something added to them, in one kernel: linear layers above all. None: the reference runs."""

from __future__ import annotations

import math
from typing import Any

from ...._core.arrays.quick import name_of
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty, of_form
from ..linalg import blas
from ..linalg.blaslt import TYPES, Matrix, Product, Refused
from ..linalg.products import laid_out
from ..runtime.plans import of_level

_plans: dict[Any, Product | None] = of_level({})
_calls: dict[Any, tuple[Product, Any]] = of_level({})
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
        return None
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


_calls_of_transposed: dict[Any, tuple[Product, Any]] = of_level({})


def addmm_of_transposed(
    self: DeviceArray, mat1: DeviceArray, mat2: DeviceArray, beta: int, alpha: int
) -> DeviceArray | None:
    """`self + mat1 @ mat2.T`: a linear layer. `mat1` may have any number of dimensions before the last."""
    key = mat1.layout, mat2.layout, self.layout, CHOICES.shortened_products
    known = _calls_of_transposed.get(key)
    if known is None or (mat1.pointer | mat2.pointer | self.pointer) & _ALIGNED:
        if mat1.form.ndim != 2:
            if not mat1.form.flags.c_contiguous:
                return None
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
