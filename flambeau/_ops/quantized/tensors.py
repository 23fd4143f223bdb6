"""Quantized tensors: making them, and looking into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.device import CPU
from ..._core.dtype import LEGACY_NAMES, float32
from ..._core.dtype import dtype as DType
from ..._core.process.caller import warn_user_once
from ..._core.quantized import (
    CODES,
    LIMITS,
    QUINT2X4,
    QUINT4X2,
    QUINT8,
    QuantizedTensor,
    Quantizer,
    codes_of,
    dequantized,
    laid_out,
    per_channel,
    per_tensor,
    quantize_array,
    quantized_tensor,
)
from ..._core.tensor import Tensor, wrap
from ..._dispatch.public.registry import export, public
from .dispatch import about_quantized

_PACKED = {QUINT4X2: 2, QUINT2X4: 4}
"""How many codes PyTorch keeps in a byte."""


def _warn_of_end() -> None:
    warn_user_once(
        "torch.quantize_per_tensor, torch.quantize_per_channel and other quantized tensor creation functions that "
        "produce tensors with dtype torch.quint8, torch.qint8, and torch.qint32 are deprecated in PyTorch"
    )


def _expect_float(input: Tensor) -> None:
    if input.dtype is not float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {LEGACY_NAMES[input.dtype]}")


def _expect_quantized(target: DType) -> None:
    if target not in LIMITS:
        raise RuntimeError(f"ScalarType {LEGACY_NAMES[target]} is not supported in new_qtensor.")


def _made(input: Tensor, quantizer: Quantizer, target: DType) -> QuantizedTensor:
    return quantized_tensor(
        quantize_array(laid_out(input._array), quantizer, target), quantizer, target, input._kind.device
    )


# ----- making them -------------------------------------------------------------------------------------------------


@public(method=False, also={"tensors": "input", "scales": "scale", "zero_points": "zero_point"})
def quantize_per_tensor(input: Tensor | Sequence[Tensor], scale: Any, zero_point: Any, dtype: DType) -> Any:
    """A tensor of codes, each of which stands for `scale * (code - zero_point)`."""
    if not isinstance(input, Tensor):
        return tuple(
            quantize_per_tensor(each, float(one), int(zero), dtype)
            for each, one, zero in zip(input, scale, zero_point, strict=True)
        )
    _expect_float(input)
    _expect_quantized(dtype)
    low, high = LIMITS[dtype]
    own = per_tensor(float(scale), int(zero_point))
    if not low <= own.zero_point <= high:
        side = "above upper" if own.zero_point > high else "below lower"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {own.zero_point} is {side} bound.")
    _warn_of_end()
    return _made(input, own, dtype)


@public(method=False)
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType) -> Tensor:
    """A tensor of codes, with a scale and a zero point for each slice along `axis`."""
    _expect_float(input)
    _expect_quantized(dtype)
    if not 0 <= axis < input.dim():
        raise RuntimeError(f"Channel axis out of range in per channel affine quantization. Got: {axis}")
    if scales.numel() != input.shape[axis] or zero_points.numel() != input.shape[axis]:
        raise RuntimeError(
            f"number of elements in scales and zero_points must be the size of dimension {axis}, {input.shape[axis]}"
        )
    _warn_of_end()
    return _made(input, per_channel(scales._array, zero_points._array, axis), dtype)


@public(method=False)
def quantize_per_tensor_dynamic(input: Tensor, dtype: DType, reduce_range: bool) -> Tensor:
    """A quantized tensor whose codes span the range of the elements; with `reduce_range` they use half of it."""
    _expect_float(input)
    if dtype not in (QUINT8, *LIMITS) or CODES[dtype] not in (np.int8, np.uint8):
        raise RuntimeError(f"dtype {dtype} not supported")
    low, high = LIMITS[dtype]
    if reduce_range:
        low, high = int(low / 2), high // 2
    array = input._array
    ends = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    scale, zero_point = choose_parameters(*ends, low, high)
    _warn_of_end()
    return _made(input, per_tensor(scale, zero_point), dtype)


def choose_parameters(least: float, most: float, low: int, high: int, symmetric: bool = False) -> tuple[float, int]:
    """A scale and a zero point such that codes from `low` to `high` span numbers from `least` to `most`.

    Zero is among the numbers. `symmetric`: its code is in the middle, if the range has both signs.
    """
    least, most = min(least, 0.0), max(most, 0.0)
    both_signs = least < 0 < most
    if symmetric and both_signs:
        half = (high - low) // 2
        step = max(least / -(half + 1), most / half)
        least, most = step * -(half + 1), step * half
    scale = (most - least) / (high - low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    scale = max(scale, float(np.float32(6.1e-5)))
    if symmetric and both_signs:
        start = (low + high) / 2
    else:
        errors = abs(low) + abs(least / scale), abs(high) + abs(most / scale)
        start = low - least / scale if errors[0] < errors[1] else high - most / scale
    return scale, int(np.clip(np.rint(start), low, high))


@public(method=False)
def empty_quantized(
    size: Any,
    qtensor: Tensor,
    *,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A quantized tensor of any content, with the meaning of another's codes."""
    if memory_format is not None:
        raise RuntimeError("empty_quantized takes the order of memory from its options alone, not by memory_format")
    if requires_grad:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if layout is not None and layout.name != "strided":
        raise NotImplementedError(f"quantized tensors are strided, and have no layout {layout}")
    if not isinstance(qtensor, QuantizedTensor):
        raise RuntimeError("empty_quantized needs a quantized tensor, whose scale and zero point it takes over")
    if dtype is not None and dtype not in CODES:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    codes = np.zeros(tuple(size), CODES[dtype or qtensor.dtype])
    return quantized_tensor(codes, qtensor._quantizer, dtype or qtensor.dtype)


about_quantized(empty_quantized)


def _empty_affine_quantized(
    *size: Any, scale: float = 1.0, zero_point: int = 0, dtype: DType = QUINT8, **options: Any
) -> Tensor:
    """A tensor whose codes have a meaning, and any value."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    return quantized_tensor(np.zeros(shape, CODES[dtype]), per_tensor(scale, zero_point), dtype)


def _empty_per_channel_affine_quantized(
    *size: Any, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType = QUINT8, **options: Any
) -> Tensor:
    """A tensor quantized with a scale for each slice, whose codes have any value."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    quantizer = per_channel(scales._array, zero_points._array, axis)
    return quantized_tensor(np.zeros(shape, CODES[dtype]), quantizer, dtype)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """A quantized tensor with given codes."""
    return quantized_tensor(input._array.copy(), per_tensor(scale, zero_point))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """A quantized tensor with given codes and a scale for each slice."""
    return quantized_tensor(input._array.copy(), per_channel(scale._array, zero_point._array, axis))


for _each in (
    _empty_affine_quantized,
    _empty_per_channel_affine_quantized,
    _make_per_tensor_quantized_tensor,
    _make_per_channel_quantized_tensor,
):
    export(_each, _each.__name__)


# ----- looking into them -------------------------------------------------------------------------------------------


def _quantizer(input: Tensor, name: str, wanted: bool | None = None) -> Quantizer:
    if not isinstance(input, QuantizedTensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is not quantized"
        )
    found = input._quantizer
    if wanted is not None and found.per_channel is not wanted:
        schemes = "kPerChannelAffine" if wanted else "kPerTensorAffine"
        raise RuntimeError(f"Expected quantizer->qscheme() == {schemes} to be true, but it is {found.scheme}")
    return found


@public(also={"tensors": "input"})
@about_quantized
def dequantize(input: Tensor | Sequence[Tensor]) -> Any:
    """The floats for which codes stand; a tensor that is not quantized in float32."""
    if not isinstance(input, Tensor):
        if not all(isinstance(each, QuantizedTensor) for each in input):
            raise NotImplementedError(
                "Could not run 'aten::dequantize.tensors' with arguments from the 'CPU' backend: not all are quantized"
            )
        return tuple(dequantized(each) for each in input)
    if isinstance(input, QuantizedTensor):
        return dequantized(input)
    return input.float() if not input.is_floating_point() else input.clone()


@public()
@about_quantized
def int_repr(input: Tensor) -> Tensor:
    """The codes of a quantized tensor, as integers; several in a byte where they have less than one."""
    _quantizer(input, "int_repr")
    assert isinstance(input, QuantizedTensor)
    count = _PACKED.get(input.dtype)
    codes = codes_of(input)
    if count is None:
        return wrap(laid_out(codes).copy(order="K"), CPU)
    padded = np.zeros((codes.size + count - 1) // count * count, np.uint8)
    padded[: codes.size] = codes.reshape(-1)
    shifts = np.arange(count, dtype=np.uint8) * (8 // count)
    return wrap(np.bitwise_or.reduce(padded.reshape(-1, count) << shifts, axis=1), CPU)


@public()
@about_quantized
def q_scale(input: Tensor) -> float:
    """The scale of a tensor that has one."""
    return float(_quantizer(input, "q_scale", False).scale)


@public()
@about_quantized
def q_zero_point(input: Tensor) -> int:
    """The code that stands for zero in a tensor that has one."""
    return int(_quantizer(input, "q_zero_point", False).zero_point)


@public()
@about_quantized
def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of the slices."""
    return wrap(_quantizer(input, "q_per_channel_scales", True).scale.copy(), CPU)


@public()
@about_quantized
def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero points of the slices."""
    return wrap(_quantizer(input, "q_per_channel_zero_points", True).zero_point.copy(), CPU)


@public()
@about_quantized
def q_per_channel_axis(input: Tensor) -> int:
    """The dimension whose slices have their own scales."""
    axis = _quantizer(input, "q_per_channel_axis", True).axis
    assert axis is not None
    return axis


@public(function=False)
@about_quantized
def qscheme(input: Tensor) -> Any:
    """How the tensor is quantized."""
    return _quantizer(input, "qscheme").scheme
