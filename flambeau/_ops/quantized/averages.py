"""Averages of quantized tensors: means, pooling, interpolation.

They are computed on codes less the zero point, where sums are exact, so that an average may lie half-way between two
codes. Which of these it becomes is PyTorch's choice: its kernels round to an even number, most of them after the zero
point is added, those that work on vectors of channels before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.device import CPU
from ..._core.quantized import (
    CODES,
    ENGINE,
    LIMITS,
    QUINT8,
    QuantizedTensor,
    codes_of,
    dequantized,
    laid_out,
    quantize_array,
    quantized_tensor,
)
from ..._core.tensor import wrap

_CHANNELS_OF_VECTORS = 16
"""How many channels PyTorch's kernels take at a time where these lie side by side; what is left goes one by one."""
_POOL_ARGUMENTS = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


def average(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> QuantizedTensor:
    """Run a function that averages elements; the result is quantized as its argument is."""
    own: QuantizedTensor = args[0]
    if own._quantizer.per_channel:
        raise RuntimeError(f"{function.__name__} only supports per-tensor quantized tensors")
    last = name.rpartition(".")[2]
    dims = _averaged_dims(last, own, args, kwargs)
    if ENGINE.is_for_phones and own.dtype is QUINT8:
        found = _for_phones(function, last, own, args, kwargs, dims)
        if found is not None:
            return found
    if dims is not None and not (_is_innermost(dims, own) and codes_of(own).flags.c_contiguous):
        return _of_floats(own, dims, keepdim=last != "mean" or _argument(args, kwargs, 2, "keepdim", False))
    if last in ("interpolate", "upsample"):
        codes = wrap(laid_out(codes_of(own)).astype(np.float32), CPU)
        return _of_codes(np.rint(function(codes, *args[1:], **kwargs)._array), own)
    averages = _on_centred(function, own, args, kwargs)
    zero_point = own._quantizer.zero_point
    codes = np.rint(averages + zero_point)
    if last == "avg_pool3d" or (last == "avg_pool2d" and not codes_of(own).flags.c_contiguous):
        channels = own.shape[-4 if last == "avg_pool3d" else -3]
        at_once = channels - channels % _CHANNELS_OF_VECTORS
        part = (..., slice(at_once), *[slice(None)] * (3 if last == "avg_pool3d" else 2))
        codes[part] = np.rint(averages[part]) + zero_point
    return _of_codes(codes, own)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str, default: Any) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, default)


def _sizes(value: Any, dimensions: int) -> tuple[Any, ...]:
    """Sizes for all dimensions, of which a function may be given one."""
    several = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return several * dimensions if len(several) == 1 else several


def _averaged_dims(
    last: str, own: QuantizedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[int, ...] | None:
    """The dimensions that a mean removes, pooling to one element included; None for what is no mean."""
    if last == "mean":
        dims = _argument(args, kwargs, 1, "dim", None)
        if dims is None or dims == () or dims == []:
            return tuple(range(own.dim()))
        return tuple(sorted(each % own.dim() for each in (dims if isinstance(dims, (tuple, list)) else (dims,))))
    if last == "adaptive_avg_pool2d" and _sizes(_argument(args, kwargs, 1, "output_size", None), 2) == (1, 1):
        return own.dim() - 2, own.dim() - 1
    return None


def _is_innermost(dims: tuple[int, ...], own: QuantizedTensor) -> bool:
    return dims == tuple(range(own.dim() - len(dims), own.dim()))


def _on_centred(function: Callable[..., Any], own: QuantizedTensor, args: tuple[Any, ...], kwargs: Any) -> Any:
    """The averages of codes less the zero point, halves as such however the average was computed."""
    centred = laid_out(codes_of(own)).astype(np.float64) - own._quantizer.zero_point
    return np.round(function(wrap(centred, CPU), *args[1:], **kwargs)._array, 9)


def _of_codes(codes: Any, own: QuantizedTensor) -> QuantizedTensor:
    limited = np.clip(codes, *LIMITS[own.dtype]).astype(CODES[own.dtype])
    return quantized_tensor(limited, own._quantizer, own.dtype)


def _of_floats(own: QuantizedTensor, dims: tuple[int, ...], keepdim: bool) -> QuantizedTensor:
    """The mean over dimensions that do not lie side by side: of the numbers themselves."""
    numbers = dequantized(own).mean(dims, keepdim)
    return quantized_tensor(quantize_array(numbers._array, own._quantizer, own.dtype), own._quantizer, own.dtype)


def _for_phones(
    function: Callable[..., Any],
    last: str,
    own: QuantizedTensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dims: tuple[int, ...] | None,
) -> QuantizedTensor | None:
    """The average as the engine for phones has it, None for what it leaves to the others.

    It multiplies sums by a rounded factor in place of dividing them, and knows neither other divisors nor padding that
    does not count.
    """
    if dims is not None:
        count = own.shape[2] * own.shape[3] if own.dim() == 4 and dims == (2, 3) else 0
    elif last in ("avg_pool1d", "avg_pool2d"):
        given = dict(zip(_POOL_ARGUMENTS, args[1:], strict=False)) | kwargs
        args, kwargs = args[:1], {key: value for key, value in given.items() if key not in _POOL_ARGUMENTS[4:]}
        count = 0 if given.get("ceil_mode") else math.prod(_sizes(given["kernel_size"], int(last[-2])))
    elif last == "adaptive_avg_pool2d":
        sizes = _sizes(_argument(args, kwargs, 1, "output_size", None), 2)
        windows = [divmod(have, want or have) for have, want in zip(own.shape[-2:], sizes, strict=True)]
        count = 0 if any(rest for _, rest in windows) else math.prod(each for each, _ in windows)
    else:
        count = 0
    if count == 0:
        return None
    scale = np.float32(own._quantizer.scale)
    sums = np.rint(_on_centred(function, own, args, kwargs) * count).astype(np.float32)
    factor = scale / (scale * np.float32(count))
    return _of_codes(np.rint(sums * factor) + own._quantizer.zero_point, own)
