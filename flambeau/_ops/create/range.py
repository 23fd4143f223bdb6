"""Sequences of numbers: arange, linspace, logspace, and index grids of triangles."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.narrow import number_as, number_type, widened
from ..._core.arrays.room import ensure_room_like
from ..._core.device import CPU
from ..._core.dtype import BOOL, COMPLEX, DEFAULTS, FLOAT, INTEGER, LEGACY_NAMES, complex128, float64, int64
from ..._core.dtype import dtype as DType
from ..._core.kind import Kind
from ..._core.random.fused_multiply_add import fused
from ..._core.size import fits_int64
from ..._core.tensor import Tensor
from ..._dispatch.arguments.promotion import Operand, is_number, scalar_category
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.one_by_one import one_by_one
from ..._dispatch.public.registry import export, guard, public
from .constants import chosen_kind, computed, delivered, dtype_of_out, made


def _number(value: Any, caller: str, word: str) -> Any:
    if isinstance(value, Tensor):
        if value._array.ndim:
            kind = TypeError if caller == "arange" else RuntimeError
            raise kind(
                f"{caller} only supports 0-dimensional start and end tensors, but got {word} with {value._array.ndim} "
                "dimension(s)."
            )
        return value.item()
    if not is_number(value):
        raise TypeError(f"{caller}(): argument '{word}' must be Number, not {type(value).__name__}")
    return value.item() if isinstance(value, np.generic) else value


def _refuse(caller: str, dtype: DType, *categories: int) -> None:
    if dtype.category in categories:
        raise NotImplementedError(f'"{caller}" not implemented for {LEGACY_NAMES[dtype]!r}')


def _check_range(start: Any, end: Any, step: Any) -> None:
    if isinstance(start, complex) or isinstance(end, complex) or isinstance(step, complex):
        raise RuntimeError("value cannot be converted to type double without overflow: the bounds must be real")
    if step == 0 or math.isnan(step):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: from {start} to {end} in steps of {step}"
        )


def _stepped(start: Any, step: Any, length: int, dtype: DType) -> Any:
    steps = np.arange(length, dtype=np.int64)
    if dtype.category == INTEGER:
        return (int(start) + steps * int(step)).astype(dtype.numpy)
    return (start + steps * float(step)).astype(dtype.numpy)


def arange(
    *bounds: Any, start: Any = None, end: Any = None, step: Any = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` up to but not including `end`, `step` apart: `arange(end)`, `arange(start, end, step)`."""
    if len(bounds) == 1 and end is None:
        end = bounds[0]
    elif len(bounds) == 1 and start is None:
        start = bounds[0]
    elif len(bounds) == 2:
        start, end = bounds
    elif len(bounds) == 3:
        start, end, step = bounds
    if end is None or len(bounds) > 3 or any(each is None for each in bounds):
        raise TypeError(
            f"arange() received an invalid combination of arguments: {len(bounds)} positional, and end={end}"
        )
    start = 0 if start is None else _number(start, "arange", "start")
    end = _number(end, "arange", "end")
    step = 1 if step is None else _number(step, "arange", "step")
    if dtype is None and out is not None:
        dtype = dtype_of_out(out)
    whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    kind = chosen_kind(dtype, device, int64 if whole else None, "arange")
    if whole and kind.dtype is int64 and not (fits_int64(start) and fits_int64(end) and fits_int64(step)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow: arange() of int64")
    if whole and kind.dtype is int64 and kind.is_cpu and step > 0 and end >= start:
        return delivered(made(np.arange(start, end, step, dtype=np.int64), kind, requires_grad), out, warns=True)
    _check_range(start, end, step)
    _refuse("arange_cpu", kind.dtype, BOOL, COMPLEX)
    if kind.dtype is int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero: it is rounded to a whole number for an int64 tensor")
        length = max(-((start - end) // step), 0)
    else:
        length = math.ceil((end - start) / step)
    if not fits_int64(length):
        raise RuntimeError(f"arange(): invalid size, possible overflow? It would have {length} elements")
    return computed(
        (length,), kind, lambda: _stepped(start, step, length, number_type(kind.dtype)), requires_grad, out, warns=True
    )


def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Deprecated in favour of `arange`: numbers from `start` to `end` inclusive, of the default dtype."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    start, end, step = (_number(each, "range", "start") for each in (start, end, step))
    kind = chosen_kind(
        dtype if dtype is not None or out is None else dtype_of_out(out),
        CPU if device is None else device,
        None,
        "range",
    )
    _check_range(start, end, step)
    length = math.floor((end - start) / step) + 1
    return computed(
        (length,), kind, lambda: _stepped(start, step, length, number_type(kind.dtype)), requires_grad, out, warns=True
    )


def _spaced(start: Any, end: Any, steps: int, dtype: DType) -> Any:
    """`steps` numbers from `start` to `end`, counted from the nearer end, so that both ends are exact."""
    if steps == 1:
        return np.array([start]).astype(dtype.numpy)
    array_type = dtype.numpy
    if dtype.category == INTEGER:
        first: Any = int(start)
        last: Any = int(end)
        step: Any = (last - first) / (steps - 1)
        positions: Any = np.arange(steps - steps // 2, dtype=np.float64)
    else:
        values = np.empty(steps, array_type)
        if steps and not dtype.is_complex and arrays.fill_spaced(values, float(start), float(end)):
            return values
        first, last = array_type.type(start), array_type.type(end)
        step = (last - first) / array_type.type(steps - 1)
        # Half precision rounds every operation; the others multiply and add in one.
        wide = array_type if array_type.itemsize == 2 else np.dtype(np.complex128 if dtype.is_complex else np.float64)
        first, last, step = wide.type(first), wide.type(last), wide.type(step)
        positions = np.arange(steps - steps // 2).astype(wide)
    half = steps // 2
    if dtype is float64:
        return np.concatenate((fused(positions[:half], step, first), fused(positions[::-1], -step, last)))
    values = np.empty(steps, array_type)
    values[:half] = first + step * positions[:half]
    values[half:] = (last - step * positions)[::-1]
    return values


_REAL = (float, int)


def _spaced_arguments(
    caller: str, start: Any, end: Any, steps: Any, out: Any, dtype: Any, device: Any
) -> tuple[Any, Any, int, Kind]:
    if type(steps) is not int:
        number = integer(steps)
        if number is None:
            given = ", ".join(type(each).__name__ for each in (start, end, steps))
            raise TypeError(
                f"{caller}() received an invalid combination of arguments - got ({given}): argument 'steps' must be "
                f"int, not {type(steps).__name__}"
            )
        steps = number
    if steps >= 2**63:
        raise ValueError(f"Overflow when unpacking long long: {caller}() was given steps beyond 64 bits")
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    is_complex = False
    if type(start) not in _REAL or type(end) not in _REAL:
        if any(isinstance(each, Tensor) and each._kind.dataless for each in (start, end)):
            start = end = 0  # their values are unknown, and the result on the meta device has none
        start, end = _number(start, caller, "start"), _number(end, caller, "end")
        is_complex = COMPLEX in (scalar_category(start), scalar_category(end))
    if dtype is None and out is not None:
        dtype = dtype_of_out(out)
    kind = chosen_kind(dtype, device, DEFAULTS.complex if is_complex else None, caller)
    if is_complex and kind.dtype.category != COMPLEX:
        raise RuntimeError(
            f"{caller}: inferred dtype {DEFAULTS.complex} can't be safely cast to passed dtype {kind.dtype}"
        )
    _refuse(f"{caller}_cpu", kind.dtype, BOOL)
    return start, end, steps, kind


@one_by_one("start", "end")
def linspace(
    start: Operand, end: Operand, steps: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers at equal distances from `start` to `end`, both included."""
    start, end, steps, kind = _spaced_arguments("linspace", start, end, steps, out, dtype, device)
    return computed((steps,), kind, lambda: _spaced(start, end, steps, number_type(kind.dtype)), requires_grad, out)


@one_by_one("start", "end", "base")
def logspace(
    start: Operand, end: Operand, steps: Any, base: Any = 10.0, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Powers of `base` whose exponents go from `start` to `end` in `steps` equal steps."""
    start, end, steps, kind = _spaced_arguments("logspace", start, end, steps, out, dtype, device)
    base = 10.0 if isinstance(base, Tensor) and base._kind.dataless else _number(base, "logspace", "base")
    if isinstance(base, complex):
        raise TypeError("logspace(): argument 'base' must be float, not complex")
    if kind.dtype.category == INTEGER:
        start, end = int(start), int(end)
    wide = np.complex128 if kind.dtype.category == COMPLEX else np.float64
    if kind.dtype.category >= FLOAT and steps > 1:
        start, end = (widened(number_as(each, kind.dtype.numpy)).astype(wide)[()] for each in (start, end))

    def powers() -> Any:
        exponents = _spaced(start, end, steps, complex128 if kind.dtype.is_complex else float64)
        return np.power(np.array(base).astype(wide), exponents).astype(number_type(kind.dtype).numpy)

    return computed((steps,), kind, powers, requires_grad, out)


def _triangle(
    caller: str, upper: bool, row: int, col: int, offset: int, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    for word, number in (("row", row), ("col", col), ("offset", offset)):
        if not fits_int64(number):
            raise ValueError(f"Overflow when unpacking long long: {caller}() was given {word}={number}")
    for word, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{word} must be non-negative, got{size}")
    kind = chosen_kind(dtype, device, int64, caller)
    _refuse(caller, kind.dtype, BOOL, FLOAT, COMPLEX)
    offset = min(max(offset, -row), col)  # beyond these nothing changes
    count = (
        row * col - _elements_of_triangle(row, col, offset - 1) if upper else _elements_of_triangle(row, col, offset)
    )

    def places() -> Any:
        return _places_in_triangle(upper, row, col, offset, count).astype(kind.dtype.numpy, copy=False)

    return computed((2, count), kind, places, requires_grad)


def _places_in_triangle(upper: bool, row: int, col: int, offset: int, count: int) -> Any:
    """Row and column numbers of `count` elements; no table is longer than the result."""
    if not count:
        return np.empty((2, 0), np.int64)
    rows = np.arange(0, min(row, col - offset)) if upper else np.arange(max(-offset, 0), row)  # those with elements
    starts = np.maximum(rows + offset, 0) if upper else np.zeros_like(rows)
    lengths = col - starts if upper else np.minimum(rows + offset + 1, col)
    result = np.empty((2, count), np.int64)
    result[0] = np.repeat(rows, lengths)
    result[1] = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    result[1] += np.arange(count)
    return result


def _elements_of_triangle(rows: int, columns: int, offset: int) -> int:
    """How many elements of a matrix are on or below a diagonal: one more in each row, from none to all of it."""
    growing = _sum_to(min(max(offset + rows, 0), columns)) - _sum_to(min(max(offset, 0), columns))
    return growing + columns * max(offset + rows - max(columns, offset), 0)


def _sum_to(number: int) -> int:
    return number * (number + 1) // 2


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column numbers of the lower triangle of a `row` x `col` matrix, row by row."""
    return _triangle("tril_indices", False, row, col, offset, dtype, device, requires_grad)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Row and column numbers of the upper triangle of a `row` x `col` matrix, row by row."""
    return _triangle("triu_indices", True, row, col, offset, dtype, device, requires_grad)


@public(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix: the powers of each element in a row, the highest first unless `increasing`."""
    if x._array.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor: its shape is {list(x._array.shape)}")
    count = x._array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError(f"N must be non-negative, got {count}")
    if not x._kind.dataless:
        ensure_room_like(x._array, (*x._array.shape, count))
    powers = arange(count, device=x._kind.device)
    if not increasing:
        powers = arange(count - 1, -1, -1, device=x._kind.device)
    return x.unsqueeze(-1) ** powers


for _function in (arange, range, linspace, logspace, tril_indices, triu_indices):
    export(guard(_function, overridable=_function in (linspace, logspace)), _function.__name__)
