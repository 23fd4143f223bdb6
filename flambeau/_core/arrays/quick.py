"""What NumPy's helpers in Python do, in a fraction of their time, which for a few elements would be most of an op."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .views import broadcast_shapes

_FLOATS = (np.float32, np.float64)
ZEROS: dict[np.dtype[Any], Any] = {np.dtype(each): np.zeros((), each) for each in _FLOATS}
ONES: dict[np.dtype[Any], Any] = {np.dtype(each): np.ones((), each) for each in _FLOATS}
"""Numbers as NumPy has the least work with them beside an array: else it would look for a common type each time."""

_NAMES: dict[np.dtype[Any], str] = {}


def name_of(dtype: np.dtype[Any]) -> str:
    """`dtype.name`, which NumPy composes anew each time."""
    try:
        return _NAMES[dtype]
    except KeyError:
        # A type that NumPy lacks, held as bits, is named by its field.
        return _NAMES.setdefault(dtype, dtype.names[0] if dtype.names else dtype.name)


def dim_moved(array: Any, source: int, target: int) -> Any:
    """A view of `array` with one dimension moved to another place, as `np.moveaxis` has it."""
    order = _order_moved(array.ndim, source, target)
    return array if order is None else array.transpose(order)


@functools.lru_cache(256)
def _order_moved(ndim: int, source: int, target: int) -> tuple[int, ...] | None:
    """The order of dimensions when one has moved; None: it stays where it is."""
    source, target = source % ndim, target % ndim
    if source == target:
        return None
    order = list(range(ndim))
    order.insert(target, order.pop(source))
    return tuple(order)


def broadcast(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` broadcast to `shape`, as `np.broadcast_to` has it; the array itself where it has that shape."""
    if array.shape == shape:
        return array
    if type(array) is np.ndarray and array.flags.forc and array.size:
        steps = _broadcast_strides(array.shape, array.strides, tuple(shape))
        if steps is not None:
            result: Any = np.ndarray(shape, array.dtype, array, 0, steps)
            result.flags.writeable = False
            return result
    return np.broadcast_to(array, shape)


@functools.lru_cache(1024)
def _broadcast_strides(
    given: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of an array that is broadcast; None: it does not fit, or nothing is left of it."""
    more = len(shape) - len(given)
    if more < 0 or 0 in shape:
        return None
    steps = [0] * more
    for size, step, wanted in zip(given, strides, shape[more:], strict=True):
        if size != wanted and size != 1:
            return None
        steps.append(step if size == wanted else 0)
    return tuple(steps)


def joint_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all broadcast, as `np.broadcast_shapes` has it."""
    first = shapes[0]
    for other in shapes[1:]:
        if other != first:
            return broadcast_shapes(*shapes)
    return first
