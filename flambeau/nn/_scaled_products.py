"""Products of matrices of few bits with scales, under the names of `torch.nn.functional`."""

from __future__ import annotations

import enum
from typing import Any

from .._core.dtype import bfloat16
from .._core.tensor import Tensor
from .._ops.linalg.scaled_mm import _scaled_mm_v2

__all__ = ["ScalingType", "SwizzleType", "scaled_mm"]


class ScalingType(enum.IntEnum):
    """What a scale belongs to: a whole matrix, a row, or a block."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """In what order scales stand in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: Any = bfloat16,
    contraction_dim: Any = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """`(mat_a * scale_a) @ (mat_b * scale_b) + bias` for matrices of 8-bit floats."""
    return _scaled_mm_v2(
        mat_a, mat_b, _listed(scale_a), _listed(scale_recipe_a), _listed(swizzle_a), _listed(scale_b),
        _listed(scale_recipe_b), _listed(swizzle_b), bias, output_dtype, list(contraction_dim), use_fast_accum,
    )  # fmt: skip
