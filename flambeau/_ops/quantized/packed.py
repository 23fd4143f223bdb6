"""Products with matrices of packed integers: the weights of layers that are quantized, and inputs that are not."""

from __future__ import annotations

import numpy as np

from ..._core.dtype import int8, int32, uint8
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public

_BLOCK = 32
"""So many 4-bit numbers stand in 16 bytes: the first half in the low bits, the second in the high bits."""
_GROUPS = (32, 64, 128, 256)


@primitive(None)
def _int8pack_mm(self: Array, mat2: Array, scales: Array) -> Array:
    product = self.astype(np.float32) @ mat2.astype(np.float32).T * scales.astype(np.float32)
    return product.astype(self.dtype, copy=False)


@public(method=False)
def _weight_int8pack_mm(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """`input @ mat2.T * scales`, where `mat2` is a matrix of int8 with a scale for each row."""
    if mat2.dtype is not int8 or mat2.dim() != 2:
        raise RuntimeError(f"_weight_int8pack_mm: expect B to be a matrix of int8, got {mat2.dtype}, {mat2.dim()}-D")
    if input.dim() != 2 or input.size(1) != mat2.size(1):
        raise RuntimeError(f"_weight_int8pack_mm: expect A of shape (any, {mat2.size(1)}), got {list(input.shape)}")
    if tuple(scales.shape) != (mat2.size(0),):
        raise RuntimeError(f"_weight_int8pack_mm: expect {mat2.size(0)} scales, got {list(scales.shape)}")
    return _int8pack_mm(input, mat2, scales)


@primitive(None)
def _int4pack(self: Array) -> Array:
    halves = self.reshape(self.shape[0], -1, 2, _BLOCK // 2)
    return (halves[:, :, 0] | halves[:, :, 1] << 4).astype(np.uint8).reshape(self.shape[0], -1)


@public(method=False)
def _convert_weight_to_int4pack_for_cpu(input: Tensor, innerKTiles: int) -> Tensor:
    """Numbers from 0 to 15, int32, two in each byte; `innerKTiles` has no meaning on the CPU."""
    if input.dtype is not int32 or input.dim() != 2:
        raise RuntimeError(f"_convert_weight_to_int4pack_for_cpu: expect a matrix of int32, got {input.dtype}")
    if input.size(1) % _BLOCK:
        raise RuntimeError(
            f"_convert_weight_to_int4pack_for_cpu: expect a multiple of {_BLOCK} columns, got {input.size(1)}"
        )
    return _int4pack(input)


@primitive(None)
def _int4pack_mm(self: Array, mat2: Array, group_size: int, scales: Array) -> Array:
    codes = mat2.reshape(mat2.shape[0], -1, _BLOCK // 2)
    numbers = np.stack([codes & 15, codes >> 4], 2).reshape(mat2.shape[0], -1, group_size).astype(np.float32) - 8
    factors = scales.astype(np.float32).transpose(1, 0, 2)
    weight = (numbers * factors[:, :, :1] + factors[:, :, 1:]).reshape(mat2.shape[0], -1)
    return (self.astype(np.float32) @ weight.T).astype(self.dtype, copy=False)


@public(method=False)
def _weight_int4pack_mm_for_cpu(input: Tensor, mat2: Tensor, qGroupSize: int, qScaleAndZeros: Tensor) -> Tensor:
    """`input @ weight.T` for a packed weight with a scale and a zero for each group: (number - 8) * scale + zero."""
    if mat2.dtype is not uint8 or mat2.dim() != 2 or input.dim() != 2 or input.size(1) != 2 * mat2.size(1):
        raise RuntimeError(
            "_weight_int4pack_mm_for_cpu: expect A (m, k) and B (n, k / 2) of uint8, got "
            f"{list(input.shape)} and {list(mat2.shape)} of {mat2.dtype}"
        )
    if qGroupSize not in _GROUPS:
        raise RuntimeError(f"_weight_int4pack_mm_for_cpu: expect qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    wanted = (input.size(1) // qGroupSize, mat2.size(0), 2)
    if tuple(qScaleAndZeros.shape) != wanted:
        raise RuntimeError(
            f"_weight_int4pack_mm_for_cpu: expect qScaleAndZeros to be {list(wanted)}, got {list(qScaleAndZeros.shape)}"
        )
    return _int4pack_mm(input, mat2, qGroupSize, qScaleAndZeros)
