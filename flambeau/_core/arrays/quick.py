"""What NumPy's helpers in Python do, in a fraction of their time, which for a few elements would be most of an op."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

ZEROS: dict[np.dtype[Any], Any] = {np.dtype(each): np.zeros((), each) for each in (np.float32, np.float64)}
"""Zero as NumPy has the least work with it beside an array: for a number it would look for a common type each time."""

_NAMES: dict[np.dtype[Any], str] = {}


def name_of(dtype: np.dtype[Any]) -> str:
    """`dtype.name`, which NumPy composes anew each time."""
    try:
        return _NAMES[dtype]
    except KeyError:
        return _NAMES.setdefault(dtype, dtype.name)


def dim_moved(array: Any, source: int, target: int) -> Any:
    """A view of `array` with one dimension moved to another place, as `np.moveaxis` has it."""
    ndim = array.ndim
    source, target = source % ndim, target % ndim
    if source == target:
        return array
    order = list(range(ndim))
    order.insert(target, order.pop(source))
    return array.transpose(order)


def spread(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` broadcast to `shape`, as `np.broadcast_to` has it; the array itself where it has that shape."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def joint_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all broadcast, as `np.broadcast_shapes` has it."""
    first = shapes[0]
    for other in shapes[1:]:
        if other != first:
            return _joint_shape(*shapes)
    return first


_joint_shape = functools.lru_cache(1024)(np.broadcast_shapes)
