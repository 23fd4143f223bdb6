"""layer_norm, group_norm and rms_norm: statistics of each sample over its last dimensions or groups of channels."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ..._core.device import channels_last, channels_last_3d, contiguous_format
from ..._core.dtype import FLOAT, LEGACY_NAMES, dtype, finfo, float32
from ..._core.geometry.layout import contiguous_array, has_format, in_format_of
from ..._core.modes import THREAD
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.backend_op import BackendOp
from ..._dispatch.composite import derivative
from ..._dispatch.dispatch import Array, several
from ..._dispatch.public.registry import public
from ..reduce.moments import (
    centred,
    check_parameters,
    mean_square,
    standardised_gradient,
    sum_of_samples,
    widened,
    widened_tensor,
)
from ..shape.view import as_shape


def _has_standard_format(tensor: Tensor) -> bool:
    return tensor._array.flags.c_contiguous or any(
        has_format(tensor._array, each) for each in (contiguous_format, channels_last, channels_last_3d)
    )


# ----- the last dimensions -----------------------------------------------------------------------------------------


@derivative("layer_norm_backward")
def _layer_norm_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    normalized_shape: tuple[int, ...],
    weight: Any,
    bias: Any,
    result1: Any,
    result2: Any,
) -> list[Any]:
    grad, of_mean, of_rstd = (widened_tensor(each) for each in grads)
    x, scale, mean, rstd = (widened_tensor(each) for each in (input, weight, result1, result2))
    inner = len(normalized_shape)
    outer = tuple(range(x.ndim - inner))
    of_input = of_weight = of_bias = None
    if needed[0]:
        scaled = grad if grad is None or scale is None else grad * scale
        dims = tuple(range(x.ndim - inner, x.ndim))
        of_input = standardised_gradient(scaled, of_mean, of_rstd, x, mean, rstd, dims)
    if needed[1] and grad is not None:
        of_weight = grad * ((x - mean) * rstd)
        of_weight = sum_of_samples(of_weight, outer) if outer else of_weight
    if needed[2] and grad is not None:
        of_bias = sum_of_samples(grad, outer) if outer else grad
    return [of_input, of_weight, of_bias]


@several("NativeLayerNormBackward0", joint=_layer_norm_gradients)
def _layer_norm(
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None,
    bias: Array | None,
    eps: float,
    kept: Any,
) -> tuple[Array, Array, Array]:
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    wide = widened(contiguous_array(input))
    rest, mean, variance = centred(wide, dims)
    rstd = 1 / np.sqrt(variance + variance.dtype.type(eps))
    rest *= rstd
    if weight is not None:
        rest *= widened(weight)
    if bias is not None:
        rest += widened(bias)
    return rest.astype(input.dtype, copy=False), mean.astype(kept, copy=False), rstd.astype(kept, copy=False)


def _checked_shape(name: str, input: Tensor, normalized_shape: Any, **parameters: Tensor | None) -> tuple[int, ...]:
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{type(normalized_shape).__name__}"
        )
    shape = tuple(normalized_shape)
    for each in shape:
        if type(each) is not int:
            shape = as_shape((shape,))
            break
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for argument, each in parameters.items():
        if each is not None and each._array.shape != shape:
            raise RuntimeError(
                f"Expected {argument} to be of same shape as normalized_shape, but got {argument} of shape "
                f"{list(each._array.shape)} and normalized_shape = {list(shape)}"
            )
    if input._array.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {wanted}], but got input of "
            f"size{list(input._array.shape)}"
        )
    return shape


@public(method=False, autocast=on(cuda=FULL))
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, with the means and 1 / deviations."""
    result, mean, rstd = _normalised(input, normalized_shape, weight, bias, eps)
    return result, mean.detach(), rstd.detach()


_norm_alone = BackendOp("norm_alone")
"""`(input, shape, weight, bias, eps, centre)`: `layer_norm`, or without `centre` `rms_norm`, and no statistics."""


def _normalised(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float, alone: bool = False
) -> tuple[Tensor, ...]:
    """The result, means and 1 / deviations; only the first is asked for where it is to be `alone`."""
    shape = normalized_shape
    if not (
        type(shape) is tuple
        and shape
        and input._array.shape[-len(shape) :] == shape
        and (weight is None or weight._array.shape == shape)
        and (bias is None or bias._array.shape == shape)
    ):
        shape = _checked_shape("layer_norm", input, shape, weight=weight, bias=bias)
    kept = check_parameters("LayerNormKernelImpl", input, weight, bias)
    if (
        alone
        and input._kind.backend.costs_per_call
        and not (
            THREAD.modes.grad and weight is not None and weight._requires_grad  # then statistics are kept
        )
    ):
        found = _norm_alone(input, shape, weight, bias, eps, True)
        if found is not None:
            return (found,)
    return _layer_norm(input, shape, weight, bias, eps, kept)


@public(method=False, name="layer_norm", autocast=on(cuda=FULL))
def torch_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalize over the last dimensions: `(input - mean) / sqrt(var + eps) * weight + bias`."""
    return _normalised(input, normalized_shape, weight, bias, eps, alone=True)[0]


@public("nn.functional.layer_norm", function=False, method=False, autocast=on(cuda=FULL))
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions: `(input - mean) / sqrt(var + eps) * weight + bias`."""
    return _normalised(input, normalized_shape, weight, bias, eps, alone=True)[0]


@derivative("rms_norm_backward")
def _rms_norm_gradients(
    grads: list[Any], needed: tuple[bool, ...], input: Any, normalized_shape: tuple[int, ...], weight: Any, result1: Any
) -> list[Any]:
    grad, of_rstd = (widened_tensor(each) for each in grads)
    x, scale, rstd = (widened_tensor(each) for each in (input, weight, result1))
    inner = len(normalized_shape)
    dims, outer = tuple(range(x.ndim - inner, x.ndim)), tuple(range(x.ndim - inner))
    count = math.prod(normalized_shape)
    standard = x * rstd
    of_input = of_weight = None
    if needed[0]:
        if grad is not None:
            scaled = grad if scale is None else grad * scale
            along = (scaled * standard).sum(axis=dims, keepdims=True) / count
            of_input = (scaled - standard * along) * rstd
        if of_rstd is not None:
            stretched = standard * (of_rstd * rstd * rstd / -count)
            of_input = stretched if of_input is None else of_input + stretched
    if needed[1] and grad is not None:
        of_weight = grad * standard
        of_weight = sum_of_samples(of_weight, outer) if outer else of_weight
    return [of_input, of_weight]


@several("MulBackward0", joint=_rms_norm_gradients)
def _rms_norm(input: Array, normalized_shape: tuple[int, ...], weight: Array | None, eps: float) -> tuple[Array, Array]:
    """`rms_norm` in one step, and 1 / the roots of the mean squares."""
    inner = len(normalized_shape)
    wide = widened(contiguous_array(input))
    squares = mean_square(wide, tuple(range(input.ndim - inner, input.ndim)))
    rstd = 1 / np.sqrt(squares + squares.dtype.type(eps))
    result = wide * rstd
    if weight is not None:
        result *= widened(weight)
    return result.astype(input.dtype, copy=False), rstd


@cache
def _precision(given: dtype) -> float:
    """The distance from 1 to the next number of the type in which `given` is computed."""
    return finfo(float32 if given.itemsize == 2 else given).eps


@public("nn.functional.rms_norm", method=False, autocast=on(cuda=FULL))
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """`input` divided by the root of its mean square over the last dimensions; then times `weight`.

    `eps`, added to the mean square, is by default the precision of the dtype in which it is computed.
    """
    shape = normalized_shape
    if not (
        type(shape) is tuple
        and shape
        and input._array.shape[-len(shape) :] == shape
        and (weight is None or weight._array.shape == shape)
    ):
        shape = _checked_shape("rms_norm", input, shape, weight=weight)
    kind = input._kind
    if kind.dtype.category < FLOAT:
        raise NotImplementedError(f'"rms_norm" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    floor = _precision(kind.dtype) if eps is None else eps
    if REPRODUCIBILITY.product is not None and not input._array.flags.c_contiguous:
        input = input.contiguous()  # of a few samples, parts of rows may have no gaps where those of many have
    if (
        not kind.dataless
        and kind.dtype.category == FLOAT
        and not kind.indirect
        and (weight is None or weight._kind is kind)
        and input._array.flags.c_contiguous
    ):
        alone = _norm_alone(input, shape, weight, None, floor, False) if kind.backend.costs_per_call else None
        return _rms_norm(input, shape, weight, floor)[0] if alone is None else alone
    wide: Tensor = widened_tensor(input)
    dims = tuple(range(-len(shape), 0))
    result = wide * (wide.pow(2).mean(dims, keepdim=True) + floor).rsqrt()
    if weight is not None:
        result = result * weight
    result = result if result.dtype is input.dtype else result.to(input.dtype)
    return result if _has_standard_format(result) else result.contiguous()


# ----- groups of channels ------------------------------------------------------------------------------------------


@derivative("group_norm_backward")
def _group_norm_gradients(
    grads: list[Any],
    needed: tuple[bool, ...],
    input: Any,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
    result1: Any,
    result2: Any,
) -> list[Any]:
    grad, of_mean, of_rstd = (widened_tensor(each) for each in grads)
    x, scale, mean, rstd = (widened_tensor(each) for each in (input, weight, result1, result2))
    by_group, by_channel = (N, group, C // group * HxW), (N, C, HxW)
    by_mean = (N, group, 1)
    x, mean, rstd = x.reshape(by_group), mean.reshape(by_mean), rstd.reshape(by_mean)
    grad = None if grad is None else grad.reshape(by_channel)
    of_input = of_weight = of_bias = None
    if needed[0]:
        scaled = grad if grad is None or scale is None else grad * scale.reshape(1, C, 1)
        scaled = None if scaled is None else scaled.reshape(by_group)
        of_mean, of_rstd = (None if each is None else each.reshape(by_mean) for each in (of_mean, of_rstd))
        of_input = standardised_gradient(scaled, of_mean, of_rstd, x, mean, rstd, (2,))
        of_input = None if of_input is None else of_input.reshape(input.shape)
    if needed[1] and grad is not None:
        of_weight = sum_of_samples(grad * ((x - mean) * rstd).reshape(by_channel), (0, 2))
    if needed[2] and grad is not None:
        of_bias = sum_of_samples(grad, (0, 2))
    return [of_input, of_weight, of_bias]


@several("NativeGroupNormBackward0", joint=_group_norm_gradients)
def _group_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
    kept: Any,
) -> tuple[Array, Array, Array]:
    wide = widened(contiguous_array(input)).reshape(N, group, C // group * HxW)
    rest, mean, variance = centred(wide, (2,))
    rstd = 1 / np.sqrt(variance + variance.dtype.type(eps))
    rest *= rstd
    rest = rest.reshape(N, C, HxW)
    if weight is not None:
        rest *= widened(weight).reshape(1, C, 1)
    if bias is not None:
        rest += widened(bias).reshape(1, C, 1)
    result = rest.reshape(input.shape).astype(input.dtype, copy=False)
    statistics = [each.reshape(N, group).astype(kept, copy=False) for each in (mean, rstd)]
    return in_format_of(result, input), *statistics


@public(method=False)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, with the means and 1 / deviations; the sizes of batch, channels and the rest are given."""
    kept = check_parameters("GroupNormKernelImpl", input, weight, bias)
    for word, given in (("weight", weight), ("bias", bias)):
        if given is not None and given._array.shape != (C,):
            raise RuntimeError(
                f"Expected {word} to be a vector of size equal to the number of channels in input, but got {word} of "
                f"shape {list(given._array.shape)} and input of shape {list(input._array.shape)}"
            )
    if input._array.size != N * C * HxW:
        raise RuntimeError(
            f"Expected X.numel() == N * C * HxW to be true, but got false: {input._array.size} elements, "
            f"N={N}, C={C}, HxW={HxW}"
        )
    if not _has_standard_format(input):
        raise RuntimeError(
            "Expected X.is_contiguous(memory_format) to be true, but got false: native_group_norm needs a contiguous "
            f"input, not one of shape {list(input._array.shape)} with strides {list(input.stride())}"
        )
    result, mean, rstd = _group_norm(input, weight, bias, N, C, HxW, group, eps, kept)
    return result, mean, rstd


@public(method=False, name="group_norm", autocast=on(cuda=FULL))
def torch_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalize over each group of channels of a sample: `(input - mean) / sqrt(var + eps) * weight + bias`."""
    shape = list(input._array.shape)
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}: shape {shape}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape} and num_groups={num_groups}"
        )
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and list(each._array.shape) != [shape[1]]:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(each._array.shape)} and input of shape {shape}"
            )
    sizes = shape[0], shape[1], math.prod(shape[2:])
    dense = input if _has_standard_format(input) else input.contiguous()
    return native_group_norm(dense, weight, bias, *sizes, num_groups, eps)[0]


@public("nn.functional.group_norm", function=False, method=False, autocast=on(cuda=FULL))
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over each group of channels of a sample: `(input - mean) / sqrt(var + eps) * weight + bias`."""
    shape = input._array.shape
    if len(shape) >= 2 and shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    return torch_group_norm(input, num_groups, weight, bias, eps)
