"""Views that programs make most: in other shapes, with dimensions exchanged, in parts. None: the reference makes them.

Only the form of an array changes. To slice one takes longer than to start a kernel: the parts of arrays that lie alike
are found once.
"""

from __future__ import annotations

from typing import Any

from .array import DeviceArray, seen_as

_MOST_SPLITS = 1024
_splits: dict[Any, tuple[tuple[Any, int], ...]] = {}
"""For how an array lies, and how it is split, the forms of its parts and how many bytes they are behind its beginning.
"""


def view(array: DeviceArray, size: tuple[int, ...]) -> DeviceArray | None:
    """The op, of arrays without gaps."""
    form = array.form
    return seen_as(array, form.reshape(size)) if form.flags.c_contiguous and form.size else None


def transpose(array: DeviceArray, dim0: int, dim1: int) -> DeviceArray | None:
    """The op."""
    form = array.form
    return seen_as(array, form.swapaxes(dim0, dim1)) if form.ndim else None


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
