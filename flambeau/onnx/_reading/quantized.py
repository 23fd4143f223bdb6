"""Numbers of 8 bits with a scale."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor

from ._table import NotRead, Operator, reader
from .nn import conv


@reader("QuantizeLinear")
def quantize(node: Operator, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    kind = flambeau.uint8 if zero is None else zero.dtype
    if kind not in (flambeau.uint8, flambeau.int8, flambeau.int32):
        raise NotRead(f"quantization to {kind}")
    step, start = _per_axis(node, x, scale), None if zero is None else _per_axis(node, x, zero)
    low, high = {flambeau.uint8: (0, 255), flambeau.int8: (-128, 127)}.get(kind, (-(2**31), 2**31 - 1))
    value = flambeau.round(x / step) + (0.0 if start is None else start.float())
    return value.clamp(low, high).to(kind)


@reader("DequantizeLinear")
def dequantize(node: Operator, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    value = x.float() if zero is None else x.float() - _per_axis(node, x, zero).float()
    return (value * _per_axis(node, x, scale).float()).to(scale.dtype)


def _per_axis(node: Operator, x: Tensor, values: Tensor) -> Tensor:
    if values.dim() == 0 or values.numel() == 1:
        return values.reshape(())
    if values.dim() > 1 or node.get("block_size", 0):
        raise NotRead("quantization in blocks")
    axis = node.get("axis", 1) % x.dim()
    return values.reshape(*[1] * axis, -1, *[1] * (x.dim() - axis - 1))


@reader("DynamicQuantizeLinear")
def dynamic_quantize(node: Operator, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low, high = flambeau.clamp(x.min(), max=0.0), flambeau.clamp(x.max(), min=0.0)
    scale = (high - low) / 255
    zero = flambeau.round((-low / scale).clamp(0, 255))
    value = (flambeau.round(x / scale) + zero).clamp(0, 255).to(flambeau.uint8)
    return value, scale, zero.to(flambeau.uint8)


def _number(value: Tensor, scale: Tensor, zero: Tensor | None, rank: int | None = None) -> Any:
    """What quantized elements stand for; with `rank`, the scale is one for each of the first dimension."""
    shape = [-1, *[1] * (rank - 1)] if rank is not None and scale.numel() > 1 else None
    step = scale if shape is None else scale.reshape(shape)
    start = zero if zero is None or shape is None else zero.reshape(shape)
    return (value.float() - (0.0 if start is None else start.float())) * step


@reader("QLinearMatMul")
def quantized_matmul(node: Operator, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                     scale: Any, zero: Any) -> Any:  # fmt: skip
    product = flambeau.matmul(_number(a, a_scale, a_zero), _number(b, b_scale, b_zero))
    return quantize(node, product, scale, zero)


@reader("QLinearConv")
def quantized_conv(node: Operator, x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, scale: Any,
                   zero: Any, bias: Any = None) -> Any:  # fmt: skip
    shift = None if bias is None else bias.float() * x_scale * w_scale
    made = conv(node, _number(x, x_scale, x_zero), _number(w, w_scale, w_zero, w.dim()), shift)
    return quantize(node, made, scale, zero)


@reader("ConvInteger")
def conv_integer(node: Operator, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    one = flambeau.ones(())
    made = conv(node, _number(x, one, x_zero), _number(w, one, w_zero, w.dim()))
    return flambeau.round(made).int()
