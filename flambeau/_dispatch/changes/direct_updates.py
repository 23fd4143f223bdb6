"""In-place updates that write into their target at once: what optimizers do all day.

`run_inplace` computes out of place and copies, and it can record. Where nothing is to be recorded and the operands are
plain arrays of one kind and shape, a generated kernel writes a large target on all threads. A small one a few NumPy
calls write, with the target as output; a large one too where nothing generates code, block after block, so that what
stands between two calls stays in the processor's cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.backend import FUNCTIONS, LARGE
from ..._core.device import CPU
from ..._core.dtype import float32, float64
from ..._core.kind import kind_of
from ..._core.modes import THREAD
from ..._core.storage import are_apart
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..abstract.combinations import interpolated, scaled_product, scaled_quotient
from ..call.results import any_needs_gradient
from ..compiled_body import INTO
from .history import end_change

_KINDS = (kind_of(float32, CPU), kind_of(float64, CPU))
_BLOCK = 65536

_MOST_EXACT = 2**53
"""Integers up to here are numbers of a kernel."""


class Update:
    """An update of a first array by others of its dtype and shape, and by numbers."""

    __slots__ = ("body", "in_place", "numbers")

    def __init__(self, in_place: Callable[..., object], body: Callable[..., Any], numbers: tuple[Any, ...]) -> None:
        self.in_place = in_place
        """(target, *others): by NumPy's functions."""
        self.body = body
        """(target, *others, *numbers): the new elements, for a generated kernel; with the same bits."""
        self.numbers = numbers


def can_write(target: Any, *others: Any) -> bool:
    """Whether an update of `target` by `others` may be written at once."""
    if type(target) not in PLAIN_TYPES or target._kind not in _KINDS or not _is_open(target):
        return False
    array = target._array
    view = array.base is not None
    for other in others:
        if type(other) not in PLAIN_TYPES or other._kind is not target._kind:
            return False
        operand = other._array
        if operand.shape != array.shape:
            return False
        if (view or operand.base is not None) and operand is not array and not are_apart(operand, array):
            return False
    return not (THREAD.modes.grad and any_needs_gradient((target, *others)))


def _is_open(target: Tensor) -> bool:
    """Whether the modes let an update write into the array of a tensor, and that has each element once."""
    if target._counter is None or target._kind not in THREAD.modes.direct:
        return False
    array = target._array  # NumPy's results without dimensions are no arrays
    return bool(array.ndim) and not (array.base is not None and 0 in array.strides)


def write_elementwise(op: Any, target: Tensor, args: tuple[Any, ...]) -> bool:
    """Let an op of one tensor and numbers write into a large target, if its kernel can; whether it was done."""
    kernel: Any = getattr(op, "kernel", None)
    into = INTO.get(kernel)
    if into is None or target._kind.indirect or not _is_open(target) or any(isinstance(each, Tensor) for each in args):
        return False
    if (THREAD.modes.grad and any_needs_gradient((target,))) or not into(target._array, *args):
        return False
    end_change(target)
    return True


def write(update: Update, target: Tensor, *others: Any) -> Tensor:
    """Run `update` on the arrays of `target` and `others`; returns `target`."""
    arrays = [target._array, *[each._array for each in others]]
    size = arrays[0].size
    has_gaps = not all(each.flags.c_contiguous for each in arrays)
    if size < LARGE or not _written_by_kernel(update, arrays, has_gaps):
        _write_in_blocks(update.in_place, arrays, size, has_gaps)
    end_change(target)
    return target


def _written_by_kernel(update: Update, arrays: list[Any], has_gaps: bool) -> bool:
    module = FUNCTIONS[np.ndarray]["pointwise"]
    if module is None or not arrays[0].flags.writeable:
        return False
    if not all(type(each) is float or abs(each) <= _MOST_EXACT for each in update.numbers):
        return False
    compiled = _compiled(module, update.body, arrays[0].dtype, len(arrays) + len(update.numbers))
    if compiled is None:
        return False
    forms = None if has_gaps else "c" * len(arrays) + "n" * len(update.numbers)
    compiled.into(arrays[:1], (*arrays, *update.numbers), forms)
    return True


@functools.lru_cache(64)
def _compiled(module: Any, body: Callable[..., Any], dtype: Any, operands: int) -> Any:
    return module.pointwise(body, [dtype] * operands, dtype)


def _write_in_blocks(in_place: Callable[..., object], arrays: list[Any], size: int, has_gaps: bool) -> None:
    if size <= _BLOCK or has_gaps:
        in_place(*arrays)
        return
    flat = [each.reshape(-1) for each in arrays]
    for start in range(0, size, _BLOCK):
        in_place(*[each[start : start + _BLOCK] for each in flat])


def add_scaled(factor: Any) -> Update:
    """`target += factor * other`."""

    def in_place(target: Any, other: Any) -> None:
        np.add(target, np.multiply(other, factor), target)

    return Update(in_place, _plus_scaled, (factor,))


def _plus_scaled(target: Any, other: Any, factor: Any) -> Any:
    return target + other * factor


def add_product(factor: Any) -> Update:
    """`target += factor * one * two`."""
    return Update(
        lambda target, one, two: np.add(target, scaled_product(one, two, factor), target), _plus_product, (factor,)
    )


def _plus_product(target: Any, one: Any, two: Any, factor: Any) -> Any:
    return target + scaled_product(one, two, factor)


def add_quotient(factor: Any) -> Update:
    """`target += factor * one / two`."""
    return Update(
        lambda target, one, two: np.add(target, scaled_quotient(one, two, factor), target), _plus_quotient, (factor,)
    )


def _plus_quotient(target: Any, one: Any, two: Any, factor: Any) -> Any:
    return target + scaled_quotient(one, two, factor)


def approach(weight: Any) -> Update:
    """`target` moves to `end`: by `weight` of the way."""
    near = abs(weight) < 0.5
    return Update(
        lambda target, end: interpolated(target, end, target.dtype.type(weight), near, target),
        _from_start if near else _from_end,
        (weight,),
    )


def _from_start(target: Any, end: Any, weight: Any) -> Any:
    return interpolated(target, end, weight, near=True)


def _from_end(target: Any, end: Any, weight: Any) -> Any:
    return interpolated(target, end, weight, near=False)


def limit(low: Any, high: Any) -> Update:
    """`target` is brought between two bounds; None is none."""

    def in_place(target: Any) -> None:
        if low is not None:
            np.maximum(target, low, out=target)
        if high is not None:
            np.minimum(target, high, out=target)

    if low is None or high is None:
        return Update(in_place, *((np.minimum, (high,)) if low is None else (np.maximum, (low,))))
    return Update(in_place, _between, (low, high))


def _between(target: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(target, low), high)
