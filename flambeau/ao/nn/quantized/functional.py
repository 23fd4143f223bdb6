"""Functions of quantized tensors, under the names of `torch.ao.nn.quantized.functional`."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch
from flambeau.nn import functional as F

from ...._ops.quantized.layers import quantized_layer
from .modules.utils import requantized

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d",
    "conv3d", "elu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d",
    "max_pool2d", "threshold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _expect(input: Any, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


# ----- results have the scale of the input -------------------------------------------------------------------------


def _avg_pool(dimensions: int, things: str) -> Any:
    """The function of the means of windows in so many dimensions."""
    name = f"avg_pool{dimensions}d"

    def avg_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        _expect(input, name)
        return getattr(F, name)(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    avg_pool.__name__ = avg_pool.__qualname__ = name
    avg_pool.__doc__ = f"Means of windows of {things}."
    return avg_pool


avg_pool2d, avg_pool3d = _avg_pool(2, "images"), _avg_pool(3, "volumes")


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Means of as many windows of images as the result has elements."""
    _expect(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Means of as many windows of volumes as the result has elements."""
    _expect(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def _max_pool(dimensions: int, things: str) -> Any:
    """The function of the largest codes of windows in so many dimensions."""

    def max_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices:
            raise NotImplementedError("return_indices is not yet implemented!")
        run = getattr(F, f"max_pool{dimensions}d")
        return run(input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{dimensions}d"
    max_pool.__doc__ = f"The largest elements of windows of {things}."
    return max_pool


max_pool1d, max_pool2d = _max_pool(1, "sequences"), _max_pool(2, "images")


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """The input in another size."""
    _expect(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def _warn(name: str) -> None:
    warnings.warn(f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3)  # noqa: E501  # fmt: skip


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """`interpolate` under an older name."""
    _warn("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate`, linear in both directions, corners on corners."""
    _warn("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` by the nearest element."""
    _warn("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Numbers cut to a range."""
    _expect(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def threshold(input: Any, threshold: float, value: float) -> Any:
    """Numbers above the threshold; the others become `value`."""
    _expect(input, "threshold")
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return F.threshold(input, threshold, value)


def clamp(input: Any, min_: float, max_: float) -> Any:
    """Numbers cut to a range."""
    _expect(input, "clamp")
    return torch.clamp(input, min_, max_)


# ----- results have scales of their own ----------------------------------------------------------------------------


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`relu6(x + 3) / 6`."""
    _expect(input, "hardsigmoid")
    return F.hardsigmoid(input)


def celu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """`x` where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""
    _expect(input, "celu")
    return requantized(F.celu(input.dequantize(), alpha), input, scale, zero_point)


def elu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""
    _expect(input, "elu")
    return requantized(F.elu(input.dequantize(), alpha), input, scale, zero_point)


def hardswish(input: Any, scale: float, zero_point: int) -> Any:
    """`x * relu6(x + 3) / 6`."""
    _expect(input, "hardswish")
    return requantized(F.hardswish(input.dequantize()), input, scale, zero_point)


def leaky_relu(
    input: Any,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Any:
    """`x` where it is positive, `negative_slope * x` elsewhere."""
    if scale is not None and zero_point is not None:
        return requantized(F.leaky_relu(input.dequantize(), negative_slope), input, scale, zero_point)
    return F.leaky_relu(input, negative_slope, inplace)


def linear(input: Any, weight: Any, bias: Any = None, scale: float | None = None, zero_point: int | None = None) -> Any:
    """`input @ weight.T + bias` of codes."""
    own_scale = input.q_scale() if scale is None else scale
    own_zero_point = input.q_zero_point() if zero_point is None else zero_point
    return quantized_layer(F.linear, input, weight, bias, own_scale, own_zero_point, channel=-1)


def _convolve(dimensions: int, input: Any, weight: Any, bias: Any, options: tuple[Any, ...], mode: str, target: Any) -> Any:  # noqa: E501  # fmt: skip
    if mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    scale, zero_point, dtype = target
    if input.dim() != dimensions + 2:
        raise ValueError(f"Input shape must have {dimensions + 2} dimensions, not {input.dim()}")
    if input.dtype is not torch.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype is not torch.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    run = getattr(F, f"conv{dimensions}d")
    return quantized_layer(
        lambda x, w: run(x, w, None, *options), input, weight, bias, scale, zero_point, channel=1, dtype=dtype
    )


def _convolution(dimensions: int, things: str) -> Any:
    """The convolution of codes in so many dimensions."""

    def conv(
        input: Any,
        weight: Any,
        bias: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        scale: float = 1.0,
        zero_point: int = 0,
        dtype: Any = torch.quint8,
    ) -> Any:
        options, target = (stride, padding, dilation, groups), (scale, zero_point, dtype)
        return _convolve(dimensions, input, weight, bias, options, padding_mode, target)

    conv.__name__ = conv.__qualname__ = f"conv{dimensions}d"
    conv.__doc__ = f"A convolution of {things} of codes."
    return conv


conv1d, conv2d, conv3d = _convolution(1, "sequences"), _convolution(2, "images"), _convolution(3, "volumes")
