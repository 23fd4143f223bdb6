"""Quantization while training, under the names of PyTorch's kernels: results with masks, scales that are learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.public.registry import function_named
from .._ops.quantized.fake import _broadcastable, _in_range
from .._ops.quantized.tensors import choose_parameters


def fake_quantize_per_tensor_affine_cachemask(
    self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantize_per_tensor_affine`, and where no element was clipped."""
    output = function_named("", "fake_quantize_per_tensor_affine")(self, scale, zero_point, quant_min, quant_max)
    return output, _in_range(self, scale, zero_point, quant_min, quant_max, None)


def fake_quantize_per_channel_affine_cachemask(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantize_per_channel_affine`, and where no element was clipped."""
    function = function_named("", "fake_quantize_per_channel_affine")
    output = function(self, scale, zero_point, axis, quant_min, quant_max)
    return output, _in_range(self, scale, zero_point, quant_min, quant_max, axis)


def _cachemask_tensor_qparams(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantize_per_tensor_affine`, if it is switched on, and where no element was clipped."""
    if not fake_quant_enabled.item():
        return self.clone(), self.new_ones(self.shape).bool()
    return fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)


def _watched(
    self: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int,
    per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`fused_moving_avg_obs_fake_quant`, and where no element was clipped."""
    statistics = running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis
    function = function_named("", "fused_moving_avg_obs_fake_quant")
    output = function(self, observer_on, fake_quant_on, *statistics, per_row_fake_quant, symmetric_quant)
    if not fake_quant_on.item():
        return output, self.new_ones(self.shape).bool()
    axis = ch_axis if per_row_fake_quant else None
    return output, _in_range(self, scale, zero_point, quant_min, quant_max, axis)


# Scales that are learned ----------------------------------------------------------------------------------------------


def _whole(zero_point: Tensor, quant_min: int, quant_max: int) -> Tensor:
    """Zero points that were learned as codes."""
    return (zero_point.detach() + 0.5).floor().clamp(quant_min, quant_max).int()


def _learnable_per_tensor(
    self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Any:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point that are learned."""
    codes = _whole(zero_point, quant_min, quant_max)
    function = function_named("", "fake_quantize_per_tensor_affine")
    return function(self, scale.item(), codes.item(), quant_min, quant_max)


def _learnable_per_channel(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> Any:  # fmt: skip
    """`fake_quantize_per_channel_affine` with scales and zero points that are learned."""
    codes = _whole(zero_point, quant_min, quant_max)
    return function_named("", "fake_quantize_per_channel_affine")(self, scale, codes, axis, quant_min, quant_max)


def _learned(
    grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None, quant_min: int, quant_max: int,
    grad_factor: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    step = _broadcastable(scale, self.ndim, axis)
    shift = _broadcastable(_whole(zero_point, quant_min, quant_max), self.ndim, axis)
    codes = (self / step).round() + shift
    inside = (codes >= quant_min) & (codes <= quant_max)
    cut = codes.clamp(quant_min, quant_max) - shift
    of_scale = grad * grad_factor * (cut * step - self).div(step).where(inside, cut)
    of_zero_point = (grad * grad_factor * -step).masked_fill(inside, 0.0)
    if axis is None:
        sums = [each.sum().reshape(scale.shape) for each in (of_scale, of_zero_point)]
    else:
        others = [each for each in range(self.ndim) if each != axis % self.ndim]
        sums = [each.sum(others) for each in (of_scale, of_zero_point)]
    return grad * inside, sums[0], sums[1]


def _learnable_per_tensor_backward(
    grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients by the input, the scale and the zero point."""
    return _learned(grad, self, scale, zero_point, None, quant_min, quant_max, grad_factor)


def _learnable_per_channel_backward(
    grad: Tensor, self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients by the input, the scales and the zero points."""
    return _learned(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


def _choose_qparams_per_tensor(self: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """A scale and a zero point with which codes of 8 bits, or 7, span the tensor."""
    least, most = self.aminmax()
    return choose_parameters(least.item(), most.item(), 0, 127 if reduce_range else 255)


QUANTIZING: dict[str, Callable[..., Any]] = {
    "fake_quantize_per_tensor_affine_cachemask": fake_quantize_per_tensor_affine_cachemask,
    "fake_quantize_per_channel_affine_cachemask": fake_quantize_per_channel_affine_cachemask,
    "fake_quantize_per_tensor_affine_cachemask_backward": lambda grad, mask: grad * mask,
    "fake_quantize_per_channel_affine_cachemask_backward": lambda grad, mask: grad * mask,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": _cachemask_tensor_qparams,
    "_fused_moving_avg_obs_fq_helper": _watched,
    "_fake_quantize_learnable_per_tensor_affine": _learnable_per_tensor,
    "_fake_quantize_learnable_per_channel_affine": _learnable_per_channel,
    "_fake_quantize_learnable_per_tensor_affine_backward": _learnable_per_tensor_backward,
    "_fake_quantize_learnable_per_channel_affine_backward": _learnable_per_channel_backward,
    "_choose_qparams_per_tensor": _choose_qparams_per_tensor,
}
"""By the names of operators."""
