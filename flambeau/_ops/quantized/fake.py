"""Quantization that a network is trained with: numbers are rounded as codes would be, and stay floats.

The gradient passes where a number lies in the range of the codes, and is zero outside of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import LEGACY_NAMES
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public


def _broadcastable(values: Any, ndim: int, axis: int | None) -> Any:
    """A number as it is; one for each slice along `axis` in a shape that broadcasts."""
    if axis is None:
        return values
    shape = [1] * ndim
    shape[axis] = -1
    return values.reshape(shape)


def _codes(x: Any, scale: Any, zero_point: Any) -> Any:
    """The codes before they are cut to their range."""
    inverse = np.float32(1) / scale
    scaled = x.astype(np.float32, copy=False) * inverse
    if getattr(zero_point, "dtype", np.dtype(int)).kind == "f":
        return np.rint(scaled + zero_point)
    return np.rint(scaled).astype(np.float64) + zero_point


def _rounded(x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    codes = np.clip(_codes(x, scale, zero_point), low, high)
    return ((codes - zero_point) * scale).astype(x.dtype, copy=False)


def _in_range(self: Tensor, scale: Any, zero_point: Any, low: int, high: int, axis: int | None) -> Tensor:
    ndim = self.dim()
    scaled, shift = self.detach() * (1 / _broadcastable(scale, ndim, axis)), _broadcastable(zero_point, ndim, axis)
    floats = isinstance(zero_point, Tensor) and zero_point.dtype.is_floating_point
    codes = (scaled + shift).round() if floats else scaled.round() + shift
    inside: Tensor = (codes >= low) & (codes <= high)
    return inside


@primitive(
    "FakeQuantizePerTensorAffineCachemaskBackward0",
    self=lambda grad, self, scale, zero_point, quant_min, quant_max: (
        grad * _in_range(self, scale, zero_point, quant_min, quant_max, None)
    ),
)
def _fake_per_tensor(self: Array, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Array:
    return _rounded(self, np.float32(scale), zero_point, quant_min, quant_max)


@primitive(
    "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    self=lambda grad, self, scale, zero_point, enabled, quant_min, quant_max: (
        grad * _in_range(self, scale, zero_point, quant_min, quant_max, None)
    ),
)
def _fake_by_tensors(
    self: Array, scale: Array, zero_point: Array, enabled: Array, quant_min: int, quant_max: int
) -> Array:
    if not enabled.reshape(-1)[0]:
        return self.copy()
    return _rounded(self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)


@primitive(
    "FakeQuantizePerChannelAffineCachemaskBackward0",
    self=lambda grad, self, scale, zero_point, axis, quant_min, quant_max: (
        grad * _in_range(self, scale, zero_point, quant_min, quant_max, axis)
    ),
)
def _fake_per_channel(self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> Array:
    own = _broadcastable(scale, self.ndim, axis), _broadcastable(zero_point, self.ndim, axis)
    return _rounded(self, *own, quant_min, quant_max)


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, but they are {quant_min} and {quant_max}"
        )


@public(method=False)
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The numbers that remain after quantizing with codes from `quant_min` to `quant_max`, as floats."""
    _check_range(quant_min, quant_max)
    if isinstance(scale, Tensor):
        enabled = scale.new_ones(1, dtype=zero_point.dtype)
        return _fake_by_tensors(input, scale, zero_point, enabled, quant_min, quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _fake_per_tensor(input, float(scale), int(zero_point), quant_min, quant_max)


@public(method=False)
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """The numbers that remain after quantizing with a scale and a zero point for each slice along `axis`, as floats."""
    _check_range(quant_min, quant_max)
    if scale.dim() != 1 or scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions: one each for every slice")
    if scale.numel() != input.shape[axis]:
        raise RuntimeError(
            f"dimensions of scale and zero-point are not consistent with input tensor: dimension {axis} has "
            f"{input.shape[axis]} slices, and there are {scale.numel()} scales"
        )
    if LEGACY_NAMES[zero_point.dtype] not in ("Int", "Float", "Half"):
        raise RuntimeError(
            f"Zero-point must be Int32, Float or Half, found {LEGACY_NAMES[zero_point.dtype]}: convert it with .int()"
        )
    if not zero_point.dtype.is_floating_point:
        least, most = zero_point.min().item(), zero_point.max().item()
        if least < quant_min or most > quant_max:
            raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _fake_per_channel(input, scale, zero_point, axis, quant_min, quant_max)


def _observe(
    input: Tensor, running_min: Tensor, running_max: Tensor, constant: float, per_row: bool, axis: int
) -> None:
    """Move the ends of the running range towards those of the input."""
    dims = tuple(each for each in range(input.dim()) if each != axis % max(input.dim(), 1)) if per_row else None
    values = input.detach()
    if dims is None:
        shape = running_min.shape if running_min.numel() == 1 else (1,)
        low, high = values.amin().reshape(shape), values.amax().reshape(shape)
    else:
        low, high = values.amin(dims), values.amax(dims)
    for running, seen in ((running_min, low), (running_max, high)):
        if running.shape != seen.shape:
            running.resize_(seen.shape).fill_(
                seen.new_tensor(float("inf") if running is running_min else -float("inf"))
            )
        fresh = running.isinf()
        running.copy_(seen.where(fresh, running + constant * (seen - running)))


def _parameters(
    low: Tensor, high: Tensor, quant_min: int, quant_max: int, symmetric: bool
) -> tuple[list[float], list[int]]:
    from .tensors import choose_parameters

    ends = zip(low.reshape(-1).tolist(), high.reshape(-1).tolist(), strict=True)
    found = [choose_parameters(least, most, quant_min, quant_max, symmetric) for least, most in ends]
    return [scale for scale, _ in found], [zero_point for _, zero_point in found]


@public(method=False)
def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Watch the range of the input, choose scale and zero point by it, and quantize: each as far as it is switched on.

    `running_min`, `running_max`, `scale` and `zero_point` are changed.
    """
    if observer_on.item():
        _observe(input, running_min, running_max, averaging_const, per_row_fake_quant, ch_axis)
        scales, zero_points = _parameters(running_min, running_max, quant_min, quant_max, symmetric_quant)
        for target, numbers in ((scale, scales), (zero_point, zero_points)):
            if target.numel() != len(numbers):
                target.resize_(len(numbers))
            target.copy_(target.new_tensor(numbers))
    if not fake_quant_on.item():
        return input.clone() if not input.requires_grad else input * 1
    # What the derivative needs must not change when the same observer sees another tensor.
    scale, zero_point = scale.clone(), zero_point.clone()
    if per_row_fake_quant:
        return _fake_per_channel(input, scale, zero_point, ch_axis, quant_min, quant_max)
    enabled = fake_quant_on if fake_quant_on.dim() else fake_quant_on.reshape(1)
    return _fake_by_tensors(input, scale, zero_point, enabled, quant_min, quant_max)


@public(method=False)
def choose_qparams_optimized(
    input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple[Tensor, Tensor]:
    """The ends of a range for codes of `bit_width` bits, found by a greedy search for the smallest error.

    Steps of `1 / n_bins` of the range move its ends inwards, as long as it is larger than `1 - ratio` of the whole.
    """
    values = input._array.reshape(-1)[:numel].astype(np.float32)
    least, most = np.float32(values.min()), np.float32(values.max())
    best_low, best_high = low, high = least, most
    step = np.float32((most - least) / np.float32(n_bins))
    smallest = np.float32((most - least) * np.float32(1 - ratio)) if n_bins else np.float32(0)
    loss = _error(values, low, high, bit_width)
    while low + step < high and high - low > smallest - 1e-30 and high - step > low:
        from_left, from_right = _error(values, low + step, high, bit_width), _error(values, low, high - step, bit_width)
        if high - low - step < smallest:
            break
        if from_left < from_right:
            low, seen = np.float32(low + step), from_left
        else:
            high, seen = np.float32(high - step), from_right
        if seen < loss:
            loss, best_low, best_high = seen, low, high
    return input.new_tensor([float(best_high)]), input.new_tensor([float(best_low)])


def _error(values: Any, low: Any, high: Any, bit_width: int) -> float:
    scale = np.float32((high - low) / np.float32(2**bit_width - 1)) or np.float32(1)
    codes = np.clip(np.rint((values - low) / scale), 0, 2**bit_width - 1)
    difference = values - (codes * scale + low)
    return float(np.linalg.norm(difference.astype(np.float32)))
