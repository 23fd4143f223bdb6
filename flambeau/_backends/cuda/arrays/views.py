"""Views that programs make most: in other shapes, with dimensions exchanged, in parts. None: the reference makes them.

Only the form of an array changes. To slice one takes longer than to start a kernel: the parts of arrays that lie alike
are found once.
"""

from __future__ import annotations

from typing import Any

from .array import DeviceArray, restrided, seen_as

_DIMS = 8
_EVERY: tuple[tuple[Any, ...], ...] = tuple([(slice(None),) * dim for dim in range(_DIMS)])
"""For a dimension the whole of those before it."""
_MOST_SPLITS = 1024
_splits: dict[Any, tuple[tuple[Any, int], ...]] = {}
"""For how an array lies, and how it is split or unbound, the forms of its parts and how many bytes these are behind its
beginning.
"""


def view(array: DeviceArray, size: tuple[int, ...]) -> DeviceArray | None:
    """The op, of arrays without gaps."""
    form = array.form
    return seen_as(array, form.reshape(size)) if form.flags.c_contiguous and form.size else None


def transpose(array: DeviceArray, dim0: int, dim1: int) -> DeviceArray | None:
    """Lowering of `transpose`: a view with two dimensions exchanged."""
    form = array.form
    return seen_as(array, form.swapaxes(dim0, dim1)) if form.ndim else None


def t(array: DeviceArray) -> DeviceArray:
    """Lowering of `t`: a view of a matrix, transposed."""
    return seen_as(array, array.form.T)


def permute(array: DeviceArray, dims: tuple[int, ...]) -> DeviceArray:
    """Lowering of `permute`: a view with the dimensions in another order."""
    return seen_as(array, array.form.transpose(dims))


def unsqueeze(array: DeviceArray, dim: int) -> DeviceArray | None:
    """The op: the new dimension has the stride of a contiguous tensor, which is that of what lies under one step."""
    form = array.form
    shape, strides = form.shape, form.strides
    if not shape or not form.size:
        return None
    step = shape[dim] * strides[dim] if dim < len(shape) else form.itemsize
    return restrided(array, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


def slice_(array: DeviceArray, dim: int, start: int, end: int, step: int) -> DeviceArray | None:
    """The op, where a part is left."""
    form = array.form
    part = form[(*_EVERY[dim], slice(start, end, step))] if start < end and dim < _DIMS else None
    return None if part is None or not part.size else seen_as(array, part, start * form.strides[dim])


def select(array: DeviceArray, dim: int, index: int) -> DeviceArray | None:
    """The op, of an array that has dimensions left."""
    form = array.form
    if form.ndim < 2 or not form.size or dim >= _DIMS:
        return None
    return seen_as(array, form[(*_EVERY[dim], index)], index * form.strides[dim])


def unbind(array: DeviceArray, dim: int) -> tuple[DeviceArray, ...] | None:
    """The op, of an array that has dimensions left."""
    form, base = array.form, array.base
    begin = 0 if base is None else array.pointer - base.pointer
    key = form.shape, form.strides, form.dtype, begin, dim
    found = _splits.get(key)
    if found is None:
        if form.ndim < 2 or not form.size or dim >= _DIMS:
            return None
        step = form.strides[dim]
        found = tuple([(form[(*_EVERY[dim], at)], at * step) for at in range(form.shape[dim])])
        if len(_splits) >= _MOST_SPLITS:
            _splits.clear()
        _splits[key] = found
    return tuple([seen_as(array, part, place) for part, place in found])


def split(array: DeviceArray, split_size: int, dim: int) -> tuple[DeviceArray, ...] | None:
    """The op, into parts of one size."""
    form, base = array.form, array.base
    begin = 0 if base is None else array.pointer - base.pointer  # forms of views know where they begin
    key = form.shape, form.strides, form.dtype, begin, split_size, dim
    found = _splits.get(key)
    if found is None:
        if split_size <= 0 or not form.size or form.shape[dim] % split_size:
            return None
        found = _parts(array, split_size, dim)
        if len(_splits) >= _MOST_SPLITS:
            _splits.clear()
        _splits[key] = found
    return tuple([seen_as(array, part, place) for part, place in found])


def _parts(array: DeviceArray, split_size: int, dim: int) -> tuple[tuple[Any, int], ...]:
    before = (slice(None),) * dim
    starts = range(0, array.form.shape[dim], split_size)
    step = array.form.strides[dim]
    return tuple([(array.form[(*before, slice(start, start + split_size))], start * step) for start in starts])
