"""Tensors without data: the meta device carries shapes, strides and dtypes through a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.layout import empty_meta

__all__ = ["empty_meta", "meta_array", "stand_in"]


def meta_array(array: Any) -> Any:
    """An array with the shape, strides and type of `array` and no memory worth speaking of; it is never read."""
    array = np.asarray(array)
    return empty_meta(array.shape, array.dtype, array.strides)


def stand_in(value: Any) -> Any:
    """For a dataless array one that a kernel may read: zeros that all share one element."""
    if type(value) is np.ndarray:
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if type(value) is list:
        return [stand_in(each) for each in value]
    return value
