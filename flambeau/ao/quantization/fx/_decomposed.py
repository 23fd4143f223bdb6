"""Quantisation as operators on plain integers, `torch.ops.quantized_decomposed`; importing this defines them."""

from __future__ import annotations

from typing import Any

from ...._core.dtype import float32
from ...._core.tensor import Tensor
from ....jit._language.numbers_of import dtype_of_number
from ....library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
"""The operators."""


def _rounded(input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any) -> Tensor:
    scaled = (input.to(float32) * (1.0 / scale)).round() + zero_point
    result: Tensor = scaled.clamp(quant_min, quant_max).to(dtype_of_number(dtype))
    return result


def quantize_per_tensor(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The integers that stand for numbers, by one scale and zero point."""
    return _rounded(input, scale, zero_point, quant_min, quant_max, dtype)


def dequantize_per_tensor(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    """The numbers that integers stand for, by one scale and zero point."""
    wanted = float32 if out_dtype is None else dtype_of_number(out_dtype)
    result: Tensor = (input.to(wanted) - zero_point) * scale
    return result


def _along(values: Tensor | None, input: Tensor, axis: int) -> Any:
    shape = [1] * input.ndim
    shape[axis] = -1
    return 0 if values is None else values.reshape(shape)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The integers that stand for numbers, by a scale and a zero point for each channel."""
    parts = _along(scales, input, axis), _along(zero_points, input, axis)
    return _rounded(input, *parts, quant_min, quant_max, dtype)


def dequantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, quant_min: int, quant_max: int, dtype: Any,
    *, out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The numbers that integers stand for, by a scale and a zero point for each channel."""
    parts = _along(scales, input, axis), _along(zero_points, input, axis)
    wanted = float32 if out_dtype is None else dtype_of_number(out_dtype)
    result: Tensor = ((input.to(float32) - parts[1]) * parts[0]).to(wanted)
    return result


_QUANTIZE = "int quant_min, int quant_max, ScalarType dtype"
_DEQUANTIZE = f"{_QUANTIZE}, *, ScalarType? out_dtype=None"
for _scheme, _point in (("", "float scale, int zero_point"), (".tensor", "Tensor scale, Tensor zero_point")):
    quantized_decomposed_lib.define(f"quantize_per_tensor{_scheme}(Tensor input, {_point}, {_QUANTIZE}) -> Tensor")
    quantized_decomposed_lib.impl(f"quantize_per_tensor{_scheme}", quantize_per_tensor, "CompositeExplicitAutograd")
    quantized_decomposed_lib.define(f"dequantize_per_tensor{_scheme}(Tensor input, {_point}, {_DEQUANTIZE}) -> Tensor")
    quantized_decomposed_lib.impl(f"dequantize_per_tensor{_scheme}", dequantize_per_tensor, "CompositeExplicitAutograd")
_CHANNELS = "Tensor scales, Tensor{} zero_points, int axis"
quantized_decomposed_lib.define(f"quantize_per_channel(Tensor input, {_CHANNELS.format('')}, {_QUANTIZE}) -> Tensor")
quantized_decomposed_lib.impl("quantize_per_channel", quantize_per_channel, "CompositeExplicitAutograd")
quantized_decomposed_lib.define(
    f"dequantize_per_channel(Tensor input, {_CHANNELS.format('?')}, {_DEQUANTIZE}) -> Tensor"
)
quantized_decomposed_lib.impl("dequantize_per_channel", dequantize_per_channel, "CompositeExplicitAutograd")
