"""Strided windows on memory: the arithmetic of shapes and strides, on arrays.

`numpy.lib.stride_tricks.as_strided` would do for the values, but its results forget which array they are a window of,
and so to which storage they belong. The windows made here have the owner of the memory as their `base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.abstract import is_abstract
from ..arrays.narrow import strided
from ..backend import backend_of_array, beside
from ..storage import address_of, owner_of

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Sizes, strides and offset of a tensor on its storage, in elements."""


def span(size: Sequence[int], strides: Sequence[int], item: int) -> int:
    """How far a window reaches from its first element: the end of its last one. Nothing if it is empty."""
    return 0 if 0 in size else item + sum([(n - 1) * step for n, step in zip(size, strides, strict=True)])


def restrided(
    array: Any, shape: tuple[int, ...], strides: tuple[int, ...], array_type: Any = None, shift: int = 0
) -> Any:
    """A window that begins where `array` does or, where it is empty, `shift` bytes later. Strides in bytes."""
    if array.flags.forc:
        if type(array) is np.ndarray:
            return np.ndarray(shape, array_type or array.dtype, array, min(shift, array.nbytes), strides)
        return _over(array, shape, array_type or array.dtype, min(shift, array.nbytes), strides)
    owner = owner_of(array)
    return window(owner, array_type or array.dtype, shape, strides, address_of(array) - address_of(owner) + shift)


def _over(memory: Any, shape: tuple[int, ...], array_type: Any, start: int, strides: tuple[int, ...]) -> Any:
    if type(memory) is np.ndarray:
        return np.ndarray(shape, array_type, memory, start, strides)
    return backend_of_array(memory).window(memory, shape, array_type, start, strides)


def window(owner: Any, array_type: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> Any:
    """A window on the memory of `owner`, `start` bytes after its beginning; strides in bytes."""
    if 0 in shape:
        start = min(start, owner.nbytes)
    if start + span(shape, strides, array_type.itemsize) <= owner.nbytes:
        if owner.flags.forc:
            return _over(owner, shape, array_type, start, strides)
        flat = owner.transpose(sorted(range(owner.ndim), key=lambda axis: -owner.strides[axis]))
        if flat.flags.c_contiguous:
            return _over(flat, shape, array_type, start, strides)
    if is_abstract(owner):  # which reaches as far as anybody wants
        return _over(owner, shape, array_type, start, strides)
    # Foreign memory with gaps.
    first = strided(owner, (1,), (0,)).view(np.uint8)
    line = strided(first, (start + 1,), (1,))[start:]
    return strided(strided(line, (array_type.itemsize,), (1,)).view(array_type), shape, strides)


def overlaps(size: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements of such a window may be one: false only where each stride steps over all smaller ones."""
    if 0 in size:
        return False
    reach = 0
    for step, n in sorted((step, n) for n, step in zip(size, strides, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += (n - 1) * step
    return False


def positions(geometry: Geometry) -> Any:
    """For each element of a window its place on the storage."""
    size, strides, offset = geometry
    places = np.full(size, offset, np.int64)
    for axis, (n, step) in enumerate(zip(size, strides, strict=True)):
        places += (np.arange(n, dtype=np.int64) * step).reshape([-1 if i == axis else 1 for i in range(len(size))])
    return places


def move_between(array: Any, source: Geometry, target: Geometry, shared: Geometry | None) -> Any:
    """Add up the elements of `array` where `source` puts them in a buffer of zeros, and read it as `target`.

    An element of the buffer that `shared` names n times counts an n-th.
    """
    low = min(source[2], target[2])
    extent = max(offset + span(size, strides, 1) for size, strides, offset in (source, target)) - low
    buffer = np.zeros(max(extent, 0), array.dtype, like=array)
    if 0 not in source[0]:
        if overlaps(*source[:2]):
            np.add.at(buffer, beside(positions(source) - low, array), array)
        else:
            _window_on(buffer, source, low)[...] = array
    if shared is not None and overlaps(*shared[:2]):
        counts = np.bincount((positions(shared) - low).reshape(-1), minlength=extent)[:extent]
        buffer /= beside(np.maximum(counts, 1).astype(buffer.dtype), array)
    found = _window_on(buffer, target, low)
    return found.copy() if overlaps(*target[:2]) else found.copy("K") if found.size < buffer.size else found


def _window_on(buffer: Any, geometry: Geometry, low: int) -> Any:
    size, strides, offset = geometry
    item = buffer.itemsize
    start = 0 if 0 in size else (offset - low) * item
    return _over(buffer, size, buffer.dtype, start, tuple([step * item for step in strides]))
