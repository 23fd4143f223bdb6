"""Linear maps and convolutions of quantized tensors.

Codes are multiplied and added up exactly, as integers in float64. The sum, the bias in its units, is then scaled to the
codes of the result in float32, with one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.arrays.quick import dim_moved
from ..._core.device import CPU
from ..._core.quantized import (
    CODES,
    LIMITS,
    QUINT8,
    QuantizedTensor,
    codes_of,
    dequantized,
    per_tensor,
    quantize_array,
    quantized_tensor,
)
from ..._core.tensor import Tensor, wrap
from .tensors import choose_parameters

Product = Callable[[Tensor, Tensor], Tensor]
"""What a layer computes of its input and its weight, without the bias."""


def _centred(tensor: QuantizedTensor) -> Tensor:
    """Codes less their zero points, in float64."""
    _, zero_point = tensor._quantizer.broadcastable(tensor.dim())
    return wrap(codes_of(tensor).astype(np.float64) - zero_point, CPU)


def _along(values: Any, ndim: int, channel: int) -> Any:
    """An array with a number for each output channel in a shape that broadcasts; one number as it is."""
    array = np.asarray(values, np.float32)
    if array.ndim == 0:
        return array
    shape = [1] * ndim
    shape[channel] = -1
    return array.reshape(shape)


def quantized_layer(
    product: Product,
    input: QuantizedTensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    scale: float,
    zero_point: int,
    *,
    channel: int,
    relu: bool = False,
    dtype: Any = None,
) -> QuantizedTensor:
    """The codes of what a layer makes of codes; `channel` is the dimension of the output's channels."""
    sums = product(_centred(input), _centred(weight))._array
    units = np.float32(input._quantizer.scale) * np.asarray(weight._quantizer.scale, np.float32)
    units = _along(units, sums.ndim, channel)
    scaled = sums.astype(np.float32)
    if bias is not None:
        scaled = scaled + _along(bias.detach()._array, sums.ndim, channel) / units
    target = input.dtype if dtype is None else dtype
    low, high = LIMITS[target]
    codes = np.rint(scaled * (units / np.float32(scale))).astype(np.float64) + zero_point
    codes = np.clip(codes, zero_point if relu else low, high).astype(CODES[target])
    if channel == 1 and codes.ndim > 3:  # PyTorch's kernels leave the channels of images last
        codes = dim_moved(np.ascontiguousarray(dim_moved(codes, 1, -1)), -1, 1)
    return quantized_tensor(codes, per_tensor(scale, zero_point), target)


def rounded_input(input: Tensor, reduce_range: bool = True) -> tuple[Tensor, float]:
    """Floats as codes less their zero point, by their own range, and the scale. `reduce_range`: codes of 7 bits."""
    codes = _quantized_by_range(input, reduce_range)
    quantizer = codes._quantizer
    return wrap(codes_of(codes).astype(np.float32) - np.float32(quantizer.zero_point), CPU), float(quantizer.scale)


def _quantized_by_range(input: Tensor, reduce_range: bool) -> QuantizedTensor:
    array = input.detach()._array
    ends = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    quantizer = per_tensor(*choose_parameters(*ends, 0, 127 if reduce_range else 255))
    return quantized_tensor(quantize_array(array, quantizer, QUINT8), quantizer, QUINT8)


def dynamic_layer(
    product: Product,
    input: Tensor,
    weight: QuantizedTensor,
    bias: Tensor | None,
    *,
    channel: int,
    relu: bool = False,
    reduce_range: bool = True,
) -> Tensor:
    """What a layer with a quantized weight makes of floats, which are quantized by their own range first."""
    codes, scale = rounded_input(input, reduce_range)
    sums = product(codes.double(), _centred(weight))._array
    units = np.float32(scale) * np.asarray(weight._quantizer.scale, np.float32)
    result = sums.astype(np.float32) * _along(units, sums.ndim, channel)
    if bias is not None:
        result = result + _along(bias.detach()._array, sums.ndim, channel)
    return wrap(np.maximum(result, 0) if relu else result, CPU)


def dynamic_convolution(
    product: Product, input: Tensor, weight: QuantizedTensor, bias: Tensor | None, *, relu: bool, reduce_range: bool
) -> Tensor:
    """What a convolution with a quantized weight makes of floats that are quantized by their own range first.

    As in PyTorch the result is rounded to the scale of the input: what lies beyond its range is cut off.
    """
    codes = _quantized_by_range(input, reduce_range)
    own = codes._quantizer
    result = quantized_layer(product, codes, weight, bias, own.scale, own.zero_point, channel=1, relu=relu)
    return dequantized(result)
