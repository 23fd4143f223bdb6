"""`torch.testing.make_tensor`: tensors of random numbers for tests."""

from __future__ import annotations

import math
from typing import Any

from ..._core.dtype import BOOL, INTEGER, bool_, finfo, iinfo
from ..._core.tensor import Tensor
from ..create.constants import empty, full
from ..shape.complex_view import view_as_real
from .draws import randint


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn evenly from `low` to `high`; by default -9 to 9, and what fits of it.

    >>> flambeau.testing.make_tensor(2, 3, dtype=flambeau.float32, device="cpu").shape
    torch.Size([2, 3])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    exact = dtype.category in (BOOL, INTEGER)
    if requires_grad and exact:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    begin, end = _interval(dtype, low, high)
    apart = noncontiguous and math.prod(sizes) > 1
    if apart:  # every second number is left out
        sizes = (*sizes[:-1], 2 * sizes[-1])
    if exact:
        result = randint(math.ceil(begin), math.ceil(end), sizes, dtype=dtype, device=device)
    elif begin == end:
        result = full(sizes, begin, dtype=dtype, device=device)
    elif dtype.wide is not None:
        wide = empty(sizes, dtype=dtype.wide, device=device)
        _uniform(wide, begin, end)
        result = wide.to(dtype)
    else:
        result = empty(sizes, dtype=dtype, device=device)
        _uniform(result, begin, end)
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if exact else finfo(dtype).tiny
    return result.requires_grad_(requires_grad) if requires_grad else result


def _uniform(tensor: Tensor, begin: float, end: float) -> None:
    (view_as_real(tensor) if tensor.is_complex() else tensor).uniform_(begin, end)


def _interval(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """The numbers to draw from: the default ones, or those that were asked for, as far as the dtype has them."""
    if dtype is bool_:
        least, most, usual = 0.0, 2.0, (0, 2)
    elif dtype.category == INTEGER:
        least, most = iinfo(dtype).min, iinfo(dtype).max + (0 if dtype.itemsize == 8 else 1)
        usual = (0, 10) if not dtype.is_signed else (-9, 10)
    else:
        limits = finfo(dtype)
        least, most, usual = limits.min, limits.max, (-9, 9)
    begin, end = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(begin) or math.isnan(end):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={end if high is None else high}")
    if begin == end and dtype.category not in (BOOL, INTEGER):
        import warnings

        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif begin >= end:
        raise ValueError(f"`low` must be less than `high`, but got {begin} >= {end}")
    elif end < least or begin >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{begin}, {end}), but {dtype} only supports "
            f"[{least}, {most})"
        )
    return max(begin, least), min(end, most)
