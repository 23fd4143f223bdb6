"""The gradients of a linear layer at once: one look for the plans of its sum and of its two products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, form_of, of_form
from ..reductions.reduce import reducing
from ..runtime.plans import of_level
from .blas import Product
from .products import TYPES, prepared, prepared_columns


class _Plan(NamedTuple):
    """For each gradient that is wanted the form of the result, and what computes it from addresses."""

    row: tuple[Any, Callable[[int, int], None]] | None
    left: tuple[Any, Product] | None
    right: tuple[Any, Product] | None


_plans: dict[Any, _Plan | None] = of_level({})
_MOST_PLANS = 4096
_ALIGNED = 15


def addmm_gradients(
    grad: DeviceArray, mat1: DeviceArray | None, mat2: DeviceArray | None, sizes: Any,
    needed: tuple[bool, bool, bool], of_transposed: bool,
) -> list[DeviceArray | None] | None:  # fmt: skip
    """The gradients of the row, of `mat1`, whose sizes are given, and of `mat2` in `row + mat1 @ mat2`.

    `of_transposed`: in `row + mat1 @ mat2.T`. Factors whose products nobody needs are None. None: there is no plan.
    """
    if REPRODUCIBILITY.product is not None or grad.pointer & _ALIGNED:
        return None
    key = (
        grad.layout, None if mat1 is None else mat1.layout, None if mat2 is None else mat2.layout, sizes, needed,
        of_transposed, CHOICES.shortened_products,
    )  # fmt: skip
    try:
        plan = _plans[key]
    except KeyError:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        first, second = (None if each is None else each.form for each in (mat1, mat2))
        plan = _plans[key] = _planned(grad.form, first, second, sizes, needed, of_transposed)
    if plan is None:
        return None
    row, left, right = plan
    place = grad.pointer
    results: list[DeviceArray | None] = [None, None, None]
    if row is not None:
        made = results[0] = of_form(row[0])
        row[1](place, made.pointer)
    if left is not None:
        assert mat2 is not None
        made = results[1] = of_form(left[0])
        left[1](made.pointer, place, mat2.pointer)
    if right is not None:
        assert mat1 is not None
        made = results[2] = of_form(right[0])
        if of_transposed:
            right[1](made.pointer, place, mat1.pointer)
        else:
            right[1](made.pointer, mat1.pointer, place)
    return results


def _planned(
    grad: Any, mat1: Any, mat2: Any, sizes: Any, needed: tuple[bool, bool, bool], of_transposed: bool
) -> _Plan | None:
    """The plan for such forms; None: one of the gradients takes more than that."""
    if grad.ndim != 2 or grad.dtype.name not in TYPES or not grad.size:
        return None
    row = left = right = None
    if needed[0]:
        row = form_of((grad.shape[1],), grad.dtype), reducing("add", grad, (0,), grad.dtype)
    if needed[1]:
        call = None if mat2 is None or mat2.ndim != 2 else prepared(grad, mat2 if of_transposed else mat2.T)
        if call is None:
            return None
        left = form_of(sizes, grad.dtype), call.multiply
    if needed[2]:
        if mat1 is None or (mat1.ndim != 2 and not of_transposed):
            return None
        call = prepared_columns(grad, mat1) if of_transposed else prepared(mat1.T, grad)
        if call is None:
            return None
        right = call
    return _Plan(row, left, right)
