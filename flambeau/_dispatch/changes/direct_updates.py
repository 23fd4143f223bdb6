"""In-place updates that write into their target at once: what optimizers do all day.

`run_inplace` computes out of place and copies, and it can record. Where nothing is to be recorded and the operands are
plain arrays of one kind and shape, a few NumPy calls with the target as output do; block after block, so that what
stands between two calls stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.device import CPU
from ..._core.dtype import float32, float64
from ..._core.kind import kind_of
from ..._core.modes import THREAD
from ..._core.storage import are_apart
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..abstract.combinations import interpolated, scaled_product, scaled_quotient
from ..call.results import any_needs_gradient
from .history import end_change

_KINDS = (kind_of(float32, CPU), kind_of(float64, CPU))
_BLOCK = 65536

Update = Callable[..., object]
"""An update of its first array, given the others."""


def can_write(target: Any, *others: Any) -> bool:
    """Whether an update of `target` by `others` may be written at once."""
    if type(target) not in PLAIN_TYPES or target._kind not in _KINDS or target._counter is None:
        return False
    modes = THREAD.modes
    if not modes.plain:
        return False
    array = target._array
    view = array.base is not None
    if not array.ndim or (view and 0 in array.strides):  # NumPy's results without dimensions are no arrays
        return False
    for other in others:
        if type(other) not in PLAIN_TYPES or other._kind is not target._kind:
            return False
        operand = other._array
        if operand.shape != array.shape:
            return False
        if (view or operand.base is not None) and operand is not array and not are_apart(operand, array):
            return False
    return not (modes.grad and any_needs_gradient((target, *others)))


def write(update: Update, target: Tensor, *others: Any) -> Tensor:
    """Run `update` on the arrays of `target` and `others`; returns `target`."""
    arrays = [target._array, *[each._array for each in others]]
    size = arrays[0].size
    if size <= _BLOCK or not all(each.flags.c_contiguous for each in arrays):
        update(*arrays)
    else:
        flat = [each.reshape(-1) for each in arrays]
        for start in range(0, size, _BLOCK):
            update(*[each[start : start + _BLOCK] for each in flat])
    end_change(target)
    return target


def add_scaled(factor: Any) -> Update:
    """`target += factor * other`."""

    def update(target: Any, other: Any) -> None:
        np.add(target, np.multiply(other, factor), target)

    return update


def add_product(factor: Any) -> Update:
    """`target += factor * one * two`."""
    return lambda target, one, two: np.add(target, scaled_product(one, two, factor), target)


def add_quotient(factor: Any) -> Update:
    """`target += factor * one / two`."""
    return lambda target, one, two: np.add(target, scaled_quotient(one, two, factor), target)


def approach(weight: Any) -> Update:
    """`target` moves to `end`: by `weight` of the way."""
    near = abs(weight) < 0.5
    return lambda target, end: interpolated(target, end, target.dtype.type(weight), near, target)


def limit(low: Any, high: Any) -> Update:
    """`target` is brought between two bounds; None is none."""

    def update(target: Any) -> None:
        if low is not None:
            np.maximum(target, low, out=target)
        if high is not None:
            np.minimum(target, high, out=target)

    return update
