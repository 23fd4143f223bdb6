"""Arrays as oneDNN sees them: data types, memory descriptors, addresses; results and reusable buffers."""

from __future__ import annotations

import bisect
import ctypes
import functools
import operator
import os
from typing import Any, NamedTuple

import numpy as np

from ...._core.process.locks import new_lock
from ..memory.workspace import DIRECT, Workspace
from .constants import BF16, F16, F32, FORMAT_ANY, MAX_DIMS, S8, S32, U8, Dims
from .library import Handle, Unsupported, get

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

# ----- data types ---------------------------------------------------------------------------------------------------

_DATA_TYPES: dict[Any, int] = {
    np.dtype(np.float32): F32,
    np.dtype(np.float16): F16,
    np.dtype(np.int32): S32,
    np.dtype(np.int8): S8,
    np.dtype(np.uint8): U8,
}


def data_type(dtype: Any) -> int:
    """oneDNN's number for a dtype."""
    found = _DATA_TYPES.get(dtype)
    if found is None:
        if dtype.name != "bfloat16":  # its dtype exists once ml_dtypes is imported, and then it gets here once
            raise Unsupported(f"oneDNN has no data type for {dtype}")
        found = _DATA_TYPES[dtype] = BF16
    return found


def common_data_type(*arrays: Array | None) -> int:
    """The number of the one floating dtype that all arrays have."""
    first, *others = [each.dtype for each in arrays if each is not None]
    if any(each != first for each in others):
        raise Unsupported("oneDNN's kernels take operands of one dtype")
    found = data_type(first)
    if found not in (F32, BF16, F16):
        raise Unsupported(f"oneDNN's kernel does not compute in {first}")
    return found


# ----- strides and addresses ----------------------------------------------------------------------------------------

_HEADER = object.__basicsize__
"""An `ndarray` object is a Python object's header, then the address of the data. Reading it there takes 0.4
microseconds; `array.ctypes.data` takes 3."""


def address(array: Array) -> int:
    """Where an array's data starts."""
    return ctypes.c_size_t.from_address(id(array) + _HEADER).value


@functools.lru_cache(maxsize=4096)
def element_strides(shape: Shape, strides: Shape, size: int) -> Shape | None:
    """Strides in elements, or None if oneDNN cannot have them: negative, overlapping or between elements.

    The stride of a dimension of size 1 says nothing, so it is replaced: equal layouts are to have equal strides.
    """
    result = [0] * len(shape)
    step = 1
    for dim in range(len(shape) - 1, -1, -1):
        if shape[dim] == 1:
            result[dim] = step
        else:
            result[dim], rest = divmod(strides[dim], size)
            if rest or result[dim] <= 0:
                return None
        step = result[dim] * shape[dim]
    reach = 1
    for stride, length in sorted((result[dim], shape[dim]) for dim in range(len(shape)) if shape[dim] > 1):
        if stride < reach:
            return None
        reach = stride * length
    return tuple(result)


def prepared(array: Array) -> tuple[Array, Shape]:
    """An array that oneDNN can read, the given one or a copy, and its strides in elements."""
    if not array.size:
        raise Unsupported("oneDNN is not asked about empty arrays")
    strides = element_strides(array.shape, array.strides, array.itemsize)
    if strides is not None and array.flags.aligned and array.ndim <= MAX_DIMS:
        return array, strides
    if array.ndim > MAX_DIMS:
        raise Unsupported(f"oneDNN's arrays have at most {MAX_DIMS} dimensions")
    return np.array(array, order="C"), dense_strides(array.shape)


@functools.lru_cache(maxsize=4096)
def dense_strides(shape: Shape, last: bool = False) -> Shape:
    """Strides in elements of (batch, channels, *sizes) without gaps, with the channels innermost if `last`."""
    order = range(len(shape) - 1, -1, -1)
    result = [0] * len(shape)
    step = 1
    for dim in (1, *(each for each in order if each != 1)) if last else order:
        result[dim] = step
        step *= shape[dim]
    return tuple(result)


def new_array(shape: Shape, dtype: Any, last: bool = False, workspace: Workspace = DIRECT) -> Array:
    """Memory for a result, with the channels innermost if `last`."""
    made: Array
    if not last:
        made = workspace.empty(shape, dtype)
        return made
    rank = len(shape)
    made = workspace.empty((shape[0], *shape[2:], shape[1]), dtype).transpose(0, rank - 1, *range(1, rank - 1))
    return made


# ----- descriptors --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def descriptor(shape: Shape, strides: Shape | None, kind: int) -> Handle:
    """A memory descriptor; without strides, the layout is for the primitive to choose."""
    library = get()
    dims = Dims(*shape)
    layout: Any = FORMAT_ANY if strides is None else Dims(*strides)
    name = "memory_desc_create_with_tag" if strides is None else "memory_desc_create_with_strides"
    return library.create(name, "memory_desc_destroy", len(shape), dims, kind, layout)


# ----- buffers ------------------------------------------------------------------------------------------------------

_ALIGNMENT = 64


class Buffer(NamedTuple):
    """Scratch memory that starts at a cache line."""

    size: int
    owner: Array
    address: int


def new_buffer(size: int) -> Buffer:
    """A buffer of at least `size` bytes."""
    owner = np.empty(size + _ALIGNMENT, np.uint8)
    start = address(owner)
    return Buffer(size, owner, start + -start % _ALIGNMENT)


class BufferPool:
    """Buffers between two uses: scratchpads and reordered operands. New memory would cost page faults at every call."""

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._idle: list[Buffer] = []
        """From the smallest to the largest."""
        self._lock = new_lock()

    def take(self, size: int) -> Buffer:
        """The smallest idle buffer that is large enough, or a new one in place of the largest that is not."""
        with self._lock:
            position = bisect.bisect_left(self._idle, size, key=_size)
            if position < len(self._idle):
                return self._idle.pop(position)
            if self._idle:
                self._idle.pop()
        return new_buffer(size)

    def give(self, buffer: Buffer) -> None:
        """Put a buffer back."""
        with self._lock:
            if len(self._idle) < self._most:
                bisect.insort(self._idle, buffer, key=_size)

    def clear(self) -> None:
        """Free the idle buffers."""
        with self._lock:
            self._idle = []


_size = operator.attrgetter("size")


BUFFERS = BufferPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BUFFERS.clear)
