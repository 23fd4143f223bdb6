"""Products of groups of matrices, where a group is a matrix of a batch or a range of rows or columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.backend import to_host
from ..._core.dtype import LEGACY_NAMES, bfloat16, float16, float32, int32
from ..._core.tensor import Tensor
from ..._dispatch.arguments.precision import in_single
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public


@primitive(
    "GroupedMmBackward0",
    self=lambda grad, mat2, offs: _product(grad, mat2.mT, offs),
    mat2=lambda grad, self, offs: _product(self.mT, grad, offs),
)
@in_single
def _grouped(self: Array, mat2: Array, offs: Array | None) -> Array:
    if offs is None:
        return arrays.matmul(self, mat2)
    ranges = [slice(start, end) for start, end in pairwise([0, *to_host(offs).tolist()])]
    if self.ndim == mat2.ndim:  # the dimension that is summed over has the groups
        result = np.empty((len(ranges), self.shape[0], mat2.shape[1]), self.dtype, like=self)
        for group, part in enumerate(ranges):
            arrays.matmul(self[:, part], mat2[part], result[group])
        return result
    result = np.zeros((self.shape[-2], mat2.shape[-1]), self.dtype, like=self)
    for group, part in enumerate(ranges):
        if self.ndim == 2:
            arrays.matmul(self[part], mat2[group], result[part])
        else:
            arrays.matmul(self[group], mat2[:, part], result[:, part])
    return result


def _product(mat_a: Any, mat_b: Any, offs: Any) -> Tensor:
    return _grouped(mat_a, mat_b, offs)


def _check(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None) -> None:
    shapes = f"(shapes {list(mat_a.shape)} and {list(mat_b.shape)})"
    for name, each in (("mat_a", mat_a), ("mat_b", mat_b)):
        if each.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d {shapes}")
        if each.dtype not in (float32, bfloat16, float16):
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {LEGACY_NAMES[each.dtype]}"
            )
    if mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(f"grouped_mm: both matrices must have one dtype, got {mat_a.dtype} and {mat_b.dtype}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match {shapes}")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError(
            f"Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d {shapes}"
        )
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError(f"batched dimension has to match {shapes}")
        return
    if offs.dim() != 1:
        raise RuntimeError(f"offs has to be 1D, got shape {list(offs.shape)}")
    if offs.dtype is not int32:
        raise RuntimeError(f"Offsets have to be int32, got {offs.dtype}")
    for each in (mat_a, mat_b):
        if each.dim() == 3 and each.shape[0] != offs.shape[0]:
            raise RuntimeError(f"matrix batch sizes have to match the number of offsets, {offs.shape[0]} {shapes}")


@public("nn.functional.grouped_mm", function=False, method=False)
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """The products of groups of matrices.

    Of two batches, matrix by matrix. A single matrix has the groups side by side, each up to the next number in `offs`:
    in the rows of `mat_a`, in the columns of `mat_b`, or, of two single ones, in the dimension that is summed over.
    """
    _check(mat_a, mat_b, offs)
    if bias is not None:
        raise RuntimeError("Bias not supported yet: add it to the result of grouped_mm")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError(f"Grouped gemm output dtype must match `mat_a` dtype: {out_dtype} and {mat_a.dtype}")
    return _grouped(mat_a, mat_b, offs)


@public(method=False)
def _grouped_mm(
    input: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """`nn.functional.grouped_mm`, with its arguments by position."""
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)
