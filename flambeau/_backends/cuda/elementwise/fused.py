"""Ops of a few elementwise steps as one kernel each. None: the reference runs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..arrays.array import DeviceArray
from .pointwise import Pointwise, pointwise

_BOOL, _SINGLE, _DOUBLE = np.dtype(bool), np.dtype(np.float32), np.dtype(np.float64)


@cache
def _masked(dtype: np.dtype[Any]) -> Pointwise | None:
    """An array times a mask times a number."""
    number = _DOUBLE if dtype == _DOUBLE else _SINGLE
    return pointwise(lambda x, mask, scale: x * mask * scale, [dtype, _BOOL, number], dtype)


def dropout(input: DeviceArray, mask: DeviceArray, p: float, train: bool) -> tuple[DeviceArray, DeviceArray] | None:
    """The elements that the mask keeps, scaled up, and the mask."""
    compiled = _masked(input.form.dtype) if train else None
    if compiled is None:
        return None
    return compiled.many(input, mask, 0.0 if p == 1 else 1 / (1 - p))[0], mask


def dropout_backward(grad_output: DeviceArray, mask: DeviceArray, scale: float) -> DeviceArray | None:
    """The gradient of the input of dropout."""
    compiled = _masked(grad_output.form.dtype) if mask.form.dtype == _BOOL else None
    return None if compiled is None else compiled.many(grad_output, mask, scale)[0]
