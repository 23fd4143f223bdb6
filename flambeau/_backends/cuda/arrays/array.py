"""`DeviceArray`: a strided array in a device's memory, which takes part in NumPy's protocols.

Its `form` is a NumPy array of the same shape, strides and dtype over a range of addresses that is reserved for forms
(`forms.py`). NumPy itself makes views of it, by its own rules; how far they are from the beginning says where the
elements are on the device.
"""

from __future__ import annotations

import math
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...._core.size import contiguous_strides
from ..runtime import driver as drivers
from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.driver import Memory, driver
from ..runtime.synchronization import HERE
from .forms import reserved

_BEGIN = reserved()
_START: int = _BEGIN.__array_interface__["data"][0]
_make: Any = np.ndarray
_new = object.__new__


Layout = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]
"""Shape, strides in bytes and dtype: what kernels are chosen by."""


class DeviceArray:
    """An array on a device. `memory` keeps what it lies in alive; `pointer` is the address of its first element.

    What ops ask of every array is kept beside its form, as attributes that cost nothing to read.
    """

    __slots__ = ("__weakref__", "base", "dtype", "form", "layout", "memory", "pointer", "shape")
    form: np.ndarray[tuple[int, ...], np.dtype[Any]]
    memory: Memory
    pointer: int
    base: DeviceArray | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    # ----- what it is ---------------------------------------------------------------------------------------------

    if TYPE_CHECKING:
        strides: tuple[int, ...]
        ndim: int
        size: int
        itemsize: int
        nbytes: int
        flags: Any
    else:  # by functions of Python's own, which are called without a frame
        strides = property(attrgetter("form.strides"))
        ndim = property(attrgetter("form.ndim"))
        size = property(attrgetter("form.size"))
        itemsize = property(attrgetter("form.itemsize"))
        nbytes = property(attrgetter("form.nbytes"))
        flags = property(attrgetter("form.flags"))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        COMPILE_QUEUE.catch_up()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer if self.size else 0, False),
            "strides": None if self.flags.c_contiguous else self.strides,
            "version": 2,
        }

    def __len__(self) -> int:
        return len(self.form)

    def __repr__(self) -> str:
        return f"<array of shape {self.shape} and type {self.dtype} on cuda>"

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays have none

    # ----- views --------------------------------------------------------------------------------------------------

    @property
    def T(self) -> DeviceArray:
        return seen_as(self, self.form.T)

    @property
    def real(self) -> DeviceArray:
        return view_of(self, self.form.real)

    @property
    def imag(self) -> DeviceArray:
        if self.form.dtype.kind != "c":
            return zeros(self.shape, self.dtype)
        return view_of(self, self.form.imag)

    def transpose(self, *axes: Any) -> DeviceArray:
        return seen_as(self, self.form.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> DeviceArray:
        return seen_as(self, self.form.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> DeviceArray:
        return seen_as(self, self.form.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DeviceArray:
        return view_of(self, self.form.diagonal(offset, axis1, axis2))

    def view(self, *dtype: Any) -> DeviceArray:
        return seen_as(self, self.form.view(*dtype))

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> DeviceArray:
        wanted = shape[0] if len(shape) == 1 else shape
        if order == "C" and self.form.flags.c_contiguous:  # the usual case, quickly
            return seen_as(self, self.form.reshape(wanted))
        try:
            return view_of(self, self.form.reshape(wanted, order=order, copy=False))
        except ValueError:
            if copy is False:
                raise
        moved = self.copy(order)
        return view_of(moved, moved.form.reshape(wanted, order=order, copy=False))

    def ravel(self, order: str = "C") -> DeviceArray:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> DeviceArray:
        return self.copy(order).reshape(-1, order=order)

    if TYPE_CHECKING:  # what `functions.py` adds

        def copy(self, order: str = "C") -> DeviceArray: ...
        def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> DeviceArray: ...
        def __getitem__(self, index: Any) -> DeviceArray: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...


def view_of(array: DeviceArray, form: Any) -> DeviceArray:
    """The array that has been made of another one's form."""
    made: DeviceArray = _new(DeviceArray)
    made.form = form
    shape = made.shape = form.shape
    dtype = made.dtype = form.dtype
    made.layout = shape, form.strides, dtype
    made.memory = array.memory
    base = array.base
    made.base = base = array if base is None else base
    made.pointer = base.pointer + (form.__array_interface__["data"][0] - _START) if form.size else base.pointer
    return made


def seen_as(array: DeviceArray, form: Any, offset: int = 0) -> DeviceArray:
    """The array that has been made of another one's form, whose first element is so many bytes behind the other's."""
    made: DeviceArray = _new(DeviceArray)
    made.form = form
    shape = made.shape = form.shape
    dtype = made.dtype = form.dtype
    made.layout = shape, form.strides, dtype
    made.memory = array.memory
    base = array.base
    made.base = array if base is None else base
    made.pointer = array.pointer + offset
    return made


def restrided(array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
    """Another array over the same memory that begins where `array` does; it has elements. Strides count bytes."""
    base = array.base
    if base is None:
        base = array
    start = array.pointer - base.pointer
    made: DeviceArray = _new(DeviceArray)
    _describe(made, _make(shape, array.dtype, _BEGIN, start, strides))
    made.memory = array.memory
    made.base = base
    made.pointer = array.pointer
    return made


def window(
    memory: DeviceArray, shape: tuple[int, ...], dtype: Any, start: int, strides: tuple[int, ...]
) -> DeviceArray:
    """An array over part of the memory of another one; start and strides count bytes."""
    base = memory if memory.base is None else memory.base
    made: DeviceArray = _new(DeviceArray)
    start += memory.pointer - base.pointer
    _describe(made, _make(shape, dtype, _BEGIN, start if 0 not in shape else 0, strides))
    made.memory = memory.memory
    made.base = base
    made.pointer = base.pointer + start
    return made


def over(memory: Memory, pointer: int, shape: Any, dtype: Any, strides: Any = None) -> DeviceArray:
    """An array without gaps that stands for the whole of a memory."""
    made: DeviceArray = _new(DeviceArray)
    _describe(made, _make(shape, dtype, _BEGIN, 0, strides))
    made.memory = memory
    made.base = None
    made.pointer = pointer
    return made


def at(pointer: int, form: Any) -> DeviceArray:
    """The array of a form at an address, whose memory others keep."""
    return over(_Nowhere(), pointer, form.shape, form.dtype, form.strides)


def form_of(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> Any:
    """The form of an array without gaps: of arrays that are alike one is enough, since nothing changes it."""
    return _make(shape, dtype, _BEGIN, 0, strides)


def _describe(made: DeviceArray, form: Any) -> None:
    """Let an array have a form, and what is read of it often."""
    made.form = form
    shape = made.shape = form.shape
    dtype = made.dtype = form.dtype
    made.layout = shape, form.strides, dtype


_Known = tuple[Any, tuple[int, ...], np.dtype[Any], Layout, int]
_known: dict[int, _Known] = {}
"""By the identity of a form the form, which thereby stays, and what every array of it has: forms are used again."""
_MOST_KNOWN = 1 << 14


def _noted(form: Any) -> _Known:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    found = _known[id(form)] = form, form.shape, form.dtype, (form.shape, form.strides, form.dtype), form.nbytes
    return found


def of_form(form: Any) -> DeviceArray:
    """A new array, uninitialised, whose form is there already."""
    _, shape, dtype, layout, nbytes = _known.get(id(form)) or _noted(form)
    memory = drivers.allocate(nbytes)
    made: DeviceArray = _new(DeviceArray)
    made.form = form
    made.shape = shape
    made.dtype = dtype
    made.layout = layout
    made.memory = memory
    made.base = None
    made.pointer = memory.ptr
    return made


_UNIT = 512
"""What lies in one piece of memory begins at multiples of it, as what has its own does."""


class Together(NamedTuple):
    """The forms of small arrays that are used together, and where they are in one piece of memory."""

    nbytes: int
    parts: tuple[tuple[Any, int, tuple[int, ...], np.dtype[Any], Layout], ...]
    """For each array its form and place, and what is read of the form often."""


def together(*forms: Any) -> Together:
    """A place for each of some forms in one piece of memory."""
    parts, end = [], 0
    for form in forms:
        parts.append((form, end, form.shape, form.dtype, (form.shape, form.strides, form.dtype)))
        end += -(-form.nbytes // _UNIT) * _UNIT
    return Together(end, tuple(parts))


def of_forms(forms: Together) -> list[DeviceArray]:
    """New arrays, uninitialised, in one piece of memory."""
    nbytes, parts = forms
    memory = drivers.allocate(nbytes)
    begin = memory.ptr
    found = []
    for form, place, shape, dtype, layout in parts:
        made: DeviceArray = _new(DeviceArray)
        made.form = form
        made.shape = shape
        made.dtype = dtype
        made.layout = layout
        made.memory = memory
        made.base = None
        made.pointer = begin + place
        found.append(made)
    return found


def empty(shape: Any, dtype: Any, strides: tuple[int, ...] | None = None) -> DeviceArray:
    """A new array, uninitialised: row by row, or with the strides of a dense array in another order."""
    try:
        form = _make(shape, dtype, _BEGIN, 0, strides)
    except TypeError:  # no form is so large, and no device: asking for the memory says so
        drivers.allocate(math.prod(shape) * dtype.itemsize)
        raise
    memory = drivers.allocate(form.nbytes)
    made: DeviceArray = _new(DeviceArray)
    _describe(made, form)
    made.memory = memory
    made.base = None
    made.pointer = memory.ptr
    return made


class _Nowhere:
    """The memory of what has no elements, and of what stands in memory that others keep."""

    ptr = 0


@cache
def nothing(dtype: Any) -> DeviceArray:
    """An array without elements, which stands for a result that nobody wants."""
    return over(_Nowhere(), 0, (0,), dtype)


def empty_beside(array: DeviceArray, dtype: Any) -> DeviceArray:
    """A new array, uninitialised, row by row, of the shape of another one that is so.

    Where the type is the same too, they share their form: nothing changes one.
    """
    if array.base is not None or dtype is not array.dtype:
        return empty(array.shape, dtype)
    memory = drivers.allocate(array.form.nbytes)
    made: DeviceArray = _new(DeviceArray)
    made.form = array.form
    made.shape = array.shape
    made.dtype = array.dtype
    made.layout = array.layout
    made.memory = memory
    made.base = None
    made.pointer = memory.ptr
    return made


def zeros(shape: Any, dtype: Any) -> DeviceArray:
    """A new array of zeros."""
    made = empty(shape, dtype)
    if made.form.size:
        driver().clear(made.pointer, made.form.nbytes)
    return made


def dense(array: DeviceArray) -> DeviceArray:
    """`array`, or a copy of it where its elements have gaps or another order."""
    return array if array.form.flags.c_contiguous else array.copy()


def dense_like(array: Any) -> tuple[int, ...]:
    """The strides, in bytes, of a copy with the dimensions in memory in the same order, without gaps."""
    form = getattr(array, "form", array)
    if form.flags.c_contiguous:
        return tuple([step * form.itemsize for step in contiguous_strides(form.shape)])
    order = sorted(range(form.ndim), key=lambda axis: (-abs(form.strides[axis]), axis))
    strides, step = [0] * form.ndim, form.itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= max(form.shape[axis], 1)
    return tuple(strides)


def is_dense(form: Any) -> bool:
    """Whether the elements lie side by side without gaps, in whatever order."""
    return bool(form.flags.c_contiguous or form.flags.f_contiguous) or dense_like(form) == tuple(form.strides)


def from_host(host: Any) -> DeviceArray:
    """A copy of a host array, in the same memory order."""
    host = np.asarray(host)
    if not is_dense(host):
        host = host.copy("K")
    made = empty(host.shape, host.dtype, host.strides if host.size else None)
    if host.size:
        driver().upload(made.pointer, host)
    return made


def to_host(array: DeviceArray) -> Any:
    """A copy on the host, in the same memory order. Waits for the device, unless the thread said otherwise."""
    form = array.form
    if not form.size:
        return np.empty(form.shape, form.dtype)
    if not is_dense(form):
        array = array.copy("K")
        form = array.form
    if HERE.goes_on:  # the copy may be under way when this returns: it goes to memory that the device writes to itself
        memory = driver().host_pool.empty((form.nbytes,), np.uint8)
        host = _make(form.shape, form.dtype, memory, 0, form.strides)
    else:
        host = _make(form.shape, form.dtype, None, 0, None) if form.flags.c_contiguous else _like(form)
    driver().download(host, array.pointer)
    return host


def _like(form: Any) -> Any:
    memory = np.empty(form.nbytes, np.uint8)
    return _make(form.shape, form.dtype, memory, 0, form.strides)
