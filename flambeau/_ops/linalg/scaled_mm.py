"""Products of matrices of 8-bit floats, each with scales of its own."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..._core.dtype import FLOAT8, float32
from ..._core.tensor import Tensor
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.changes.out import store
from ..._dispatch.public.registry import public
from ..create.constants import as_dtype

_TENSOR_WISE, _ROW_WISE = range(2)
"""One scale for a whole matrix; one for each row of the first and each column of the second."""


@public(method=False)
def _scaled_mm(
    input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: Any = None, use_fast_accum: bool = False, *, out: Any = None,
) -> Tensor:  # fmt: skip
    """The product of two matrices of 8-bit floats times their scales, plus `bias`; in float32, rounded once.

    The result has `out_dtype`, by default that of `input`; an 8-bit result is divided by `scale_result`.
    """
    _check_matrices(input, mat2, bias)
    if scale_a.numel() != 1 or scale_b.numel() != 1:
        if not (scale_a.is_contiguous() and scale_b.is_contiguous()):
            raise _wrong_scales(input, mat2, scale_a, scale_b)
        _check_row_wise(input, mat2, scale_a, scale_b)
    return _product(input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, out, use_fast_accum)


@public(method=False)
def _scaled_mm_v2(
    input: Tensor, mat2: Tensor, scale_a: Sequence[Tensor], recipe_a: Sequence[int], swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor], recipe_b: Sequence[int], swizzle_b: Sequence[int], bias: Tensor | None, out_dtype: Any,
    contraction_dim: Sequence[int] = (), use_fast_accum: bool = False, *, out: Any = None,
) -> Tensor:  # fmt: skip
    """`_scaled_mm` with a recipe for each matrix that says what its scales belong to."""
    if any(operator.index(each) for each in (*swizzle_a, *swizzle_b)):
        raise ValueError("CPU does not support swizzle.")
    if len(contraction_dim) not in (0, 2):
        raise ValueError(f"contraction_dim must have exactly 2 elements, got {list(contraction_dim)}")
    _check_matrices(input, mat2, bias)
    recipes = {tuple(operator.index(each) for each in recipe) for recipe in (recipe_a, recipe_b)}
    if len(scale_a) != 1 or len(scale_b) != 1 or recipes not in ({(_TENSOR_WISE,)}, {(_ROW_WISE,)}):
        raise _wrong_scales(input, mat2, *scale_a[:1], *scale_b[:1])
    if recipes == {(_TENSOR_WISE,)}:
        for name, scale in (("scale_a", scale_a[0]), ("scale_b", scale_b[0])):
            if scale.numel() != 1 or scale.dtype is not float32:
                raise ValueError(f"{name} must have 1 Float element, got {scale.dtype} of shape {list(scale.shape)}")
    else:
        _check_row_wise(input, mat2, scale_a[0], scale_b[0])
    return _product(input, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, out, use_fast_accum)


def _check_matrices(left: Tensor, right: Tensor, bias: Tensor | None) -> None:
    for name, matrix in (("mat1", left), ("mat2", right)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got shape {list(matrix.shape)}")
    (rows, inner), (inner_2, columns) = left.shape, right.shape
    if inner != inner_2:
        raise RuntimeError(
            f"mat_a and mat_b shapes cannot be multiplied ({rows}x{inner} and {inner_2}x{columns}): the columns of the "
            "first must be as many as the rows of the second"
        )
    if bias is not None and bias.numel() != columns:
        raise RuntimeError(f"Bias must be size {columns} but got {bias.numel()}")


def _check_row_wise(left: Tensor, right: Tensor, scale_a: Tensor, scale_b: Tensor) -> None:
    if tuple(scale_a.shape) != (left.shape[0], 1) or tuple(scale_b.shape) != (1, right.shape[1]):
        raise _wrong_scales(left, right, scale_a, scale_b)
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if scale.stride(1) != 1:
            raise ValueError(f"expected {name}.stride(1) to be 1, but got {scale.stride(1)}")


def _wrong_scales(left: Tensor, right: Tensor, *scales: Tensor) -> ValueError:
    given = ", ".join(f"{each.dtype} of shape {list(each.shape)}" for each in (left, right, *scales))
    return ValueError(
        "Invalid scaling configuration. Both matrices must be float8 and their scales float32: one element each, or "
        f"for each row and column, of shapes ({left.shape[0]}, 1) and (1, {right.shape[1]}), contiguous. Got {given}."
    )


def _product(
    left: Any, right: Any, scale_a: Tensor, scale_b: Tensor, bias: Any, scale_result: Any, out_dtype: Any, out: Any,
    quick_sums: bool,
) -> Tensor:  # fmt: skip
    if not (left.dtype in FLOAT8 and right.dtype in FLOAT8 and scale_a.dtype is scale_b.dtype is float32):
        raise _wrong_scales(left, right, scale_a, scale_b)
    target = left.dtype if out_dtype is None else as_dtype(out_dtype, "_scaled_mm")
    if out is not None:
        if out_dtype is not None and target is not out.dtype:
            raise ValueError(f"out_dtype must match output matrix type: {target} is not {out.dtype}")
        scale_result = None if out_dtype is None else scale_result
        target = out.dtype
    if bias is None is out and left._kind.backend.costs_per_call:
        product: Tensor | None = _product_of_narrow(left, right, scale_a, scale_b, target.numpy, quick_sums)
        if product is not None:
            return product
    result = (left.to(float32) * scale_a) @ (right.to(float32) * scale_b)
    if bias is not None:
        result = result + bias.to(float32)
    if scale_result is not None and target in FLOAT8:
        result = result / scale_result
    result = result.to(target)
    return result if out is None else store(result, out)


_product_of_narrow = BackendOp("product_of_narrow", narrow=True)
"""`(left, right, scale_a, scale_b, dtype, quick_sums)`: by a device's library, which reads 8-bit floats as they are."""
