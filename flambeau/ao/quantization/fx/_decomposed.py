"""Quantisation as operators on plain integers, `torch.ops.quantized_decomposed`; importing this defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._core.dtype import float16, float32, float64, int64, uint8
from ...._core.tensor import Tensor
from ...._dispatch.public.registry import function_named
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


# Scales and zero points -----------------------------------------------------------------------------------------------


def choose_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Tensor, Tensor]:
    """The scale and the zero point with which the integers of a range span a tensor."""
    least, most = min(input.min().item(), 0.0), max(input.max().item(), 0.0)
    scale = max((most - least) / (quant_max - quant_min), eps)
    point = min(max(quant_min - round(least / scale), quant_min), quant_max)
    return input.new_tensor([scale], dtype=float64), input.new_tensor([point], dtype=int64)


def choose_qparams_symmetric(
    input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    """`choose_qparams` with zero in the middle of the range."""
    largest = max(-input.min().item(), input.max().item(), 0.0)
    scale = max(largest / ((quant_max - quant_min) / 2), eps)
    point = _MIDDLE if dtype_of_number(dtype) is uint8 else 0
    return input.new_tensor([scale], dtype=float64), input.new_tensor([point], dtype=int64)


_MIDDLE = 128
_LEAST, _MOST = -128, 127


def choose_qparams_per_token(input: Tensor, dtype: Any) -> tuple[Any, Any]:
    """A scale for each row, with zero as its zero point."""
    scales = input.abs().amax(-1, keepdim=True)
    scales = (scales.float() if input.dtype is float16 else scales).clamp(min=1e-5) / _MOST
    return scales, scales * 0


def choose_qparams_per_token_asymmetric(input: Tensor, dtype: Any) -> tuple[Any, Any]:
    """A scale and a zero point for each row."""
    least, most = input.amin(-1, keepdim=True).clamp(max=0), input.amax(-1, keepdim=True).clamp(min=0)
    scale = ((most - least) / (_MOST - _LEAST)).clamp(min=2.0**-23)
    low, high = least / scale, most / scale
    point = (_LEAST - low).where(_LEAST + low + _MOST + high > 0, _MOST - high)
    return scale.to(float64), point.clamp(_LEAST, _MOST).round().to(int64)


# Rows, and groups of elements of rows ---------------------------------------------------------------------------------


def quantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    """The integers that stand for numbers, by a scale and a zero point for each row."""
    codes = (input * (1.0 / scales) + zero_points).round()
    return codes.clamp(quant_min, quant_max).to(dtype_of_number(dtype))


def dequantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, output_dtype: Any
) -> Any:
    """The numbers that integers stand for, by a scale and a zero point for each row."""
    return ((input - zero_points) * scales).to(dtype_of_number(output_dtype))


def quantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, group_size: int
) -> Any:
    """The integers that stand for numbers, by a scale and a zero point for every `group_size` elements."""
    parts = input.reshape(-1, group_size), scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    return quantize_per_token(*parts, quant_min, quant_max, dtype).reshape(input.shape)


def dequantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, quant_min: int, quant_max: int, dtype: Any,
    group_size: int, output_dtype: Any,
) -> Any:  # fmt: skip
    """The numbers that integers stand for, by a scale and a zero point for every `group_size` elements."""
    points = 0 if zero_points is None else zero_points.reshape(-1, 1)
    numbers = (input.reshape(-1, group_size) - points) * scales.reshape(-1, 1)
    return numbers.reshape(input.shape).to(dtype_of_number(output_dtype))


def fake_quant_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int
) -> Any:
    """Numbers rounded as their integers would be, by a scale and a zero point for each channel."""
    function = function_named("", "fake_quantize_per_channel_affine")
    return function(input, scales, zero_points.int(), axis, quant_min, quant_max)


def convert_element_type(input: Tensor, dtype: Any) -> Any:
    """The numbers in another dtype."""
    return input.to(dtype_of_number(dtype))


# Definitions ----------------------------------------------------------------------------------------------------------

_RANGE = "int quant_min, int quant_max"
_QUANTIZE = f"{_RANGE}, ScalarType dtype"
_TENSORS = "Tensor scale, Tensor zero_point"
_CHANNELS = "Tensor scales, Tensor{} zero_points"
_OUT = "*, ScalarType? out_dtype=None"
_OF_TENSORS = "Tensor quant_min, Tensor quant_max, ScalarType dtype"
_BOTH = "(Tensor, Tensor)"


def _defined(name: str, parameters: str, function: Callable[..., Any], returns: str = "Tensor") -> None:
    quantized_decomposed_lib.define(f"{name}(Tensor input, {parameters}) -> {returns}")
    quantized_decomposed_lib.impl(name, function, "CompositeExplicitAutograd")


for _scheme, _parameters in (
    ("", f"float scale, int zero_point, {_QUANTIZE}"),
    (".tensor", f"{_TENSORS}, {_QUANTIZE}"),
    (".tensor2", f"{_TENSORS}, {_OF_TENSORS}"),
):
    _defined(f"quantize_per_tensor{_scheme}", _parameters, quantize_per_tensor)
    _defined(f"dequantize_per_tensor{_scheme}", f"{_parameters}, {_OUT}", dequantize_per_tensor)
_defined("quantize_per_channel", f"{_CHANNELS.format('')}, int axis, {_QUANTIZE}", quantize_per_channel)
_defined("dequantize_per_channel", f"{_CHANNELS.format('?')}, int axis, {_QUANTIZE}, {_OUT}", dequantize_per_channel)
_defined("choose_qparams.tensor", f"{_RANGE}, float eps, ScalarType dtype", choose_qparams, _BOTH)
_defined("choose_qparams_symmetric.tensor", f"{_RANGE}, float eps, ScalarType dtype", choose_qparams_symmetric, _BOTH)
_defined("choose_qparams_per_token", "ScalarType dtype", choose_qparams_per_token, _BOTH)
for _name in ("choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"):
    _defined(_name, "ScalarType dtype", choose_qparams_per_token_asymmetric, _BOTH)
_defined("quantize_per_token", f"{_CHANNELS.format('')}, {_QUANTIZE}", quantize_per_token)
_defined("dequantize_per_token", f"{_CHANNELS.format('')}, {_QUANTIZE}, ScalarType output_dtype", dequantize_per_token)
_GROUP = f"{_QUANTIZE}, int group_size"
_defined("quantize_per_channel_group", f"{_CHANNELS.format('')}, {_GROUP}", quantize_per_channel_group)
_defined(
    "dequantize_per_channel_group",
    f"{_CHANNELS.format('?')}, {_GROUP}, ScalarType output_dtype",
    dequantize_per_channel_group,
)
_defined("fake_quant_per_channel", f"{_CHANNELS.format('')}, int axis, {_RANGE}", fake_quant_per_channel)
_defined("convert_element_type.no_fuse", "ScalarType dtype", convert_element_type)
