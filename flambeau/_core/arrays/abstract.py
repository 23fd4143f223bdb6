"""Abstract arrays: shape, strides and type, no data. Tensors of the meta device hold them.

An `AbstractArray` takes part in NumPy's protocols and has the methods of NumPy's arrays, so the reference kernel of an
op is its shape rule: nothing is computed, and nothing is allocated. Whatever needs an element raises `NeedsData`. There
is no address that NumPy or another library could follow: views are arithmetic (`views.py`). Strides are those that
NumPy's own results have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..backend import Backend, install
from ..size import contiguous_byte_strides
from . import views
from .views import Geometry, Shape


class NeedsData(NotImplementedError):
    """A kernel has asked for an element of an array that has none."""


class AbstractArray(NDArrayOperatorsMixin):
    """What is known of an array without its elements."""

    __slots__ = ("__weakref__", "base", "dtype", "shape", "start", "strides")

    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]
    base: AbstractArray | None
    start: int
    sum: Callable[..., Any]
    prod: Callable[..., Any]
    max: Callable[..., Any]
    min: Callable[..., Any]
    any: Callable[..., Any]
    all: Callable[..., Any]

    def __init__(
        self, shape: Shape, strides: Shape, dtype: np.dtype[Any], base: AbstractArray | None = None, start: int = 0
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.base = base
        """The array that stands for the whole memory; None: this one."""
        self.start = start
        """A number of bytes that says how views of the same memory lie to each other."""

    # ----- NumPy's protocols ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .abstract_functions import run_ufunc

        return run_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .abstract_functions import RULES

        rule = RULES.get(function)
        if rule is not None:
            return rule(*args, **kwargs)
        # What NumPy has written in Python comes down to methods and to other functions.
        return function._implementation(*args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NeedsData("conversion to an array with data")

    # ----- what it is -------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(self)

    def _seen(self, geometry: Geometry, dtype: np.dtype[Any] | None = None) -> AbstractArray:
        """A view of this array."""
        shape, strides, distance = geometry
        base = self if self.base is None else self.base
        return AbstractArray(shape, strides, self.dtype if dtype is None else dtype, base, self.start + distance)

    def _part(self, number: int) -> AbstractArray:
        """The real parts of complex numbers, or the imaginary ones."""
        half = np.dtype(f"f{self.itemsize // 2}")
        return self._seen((self.shape, self.strides, number * half.itemsize), half)

    @property
    def T(self) -> AbstractArray:
        return self._seen((self.shape[::-1], self.strides[::-1], 0))

    @property
    def mT(self) -> AbstractArray:
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> AbstractArray:
        return self if self.dtype.kind != "c" else self._part(0)

    @real.setter
    def real(self, value: Any) -> None:
        check_fits(value, self.shape)

    @property
    def imag(self) -> AbstractArray:
        if self.dtype.kind == "c":
            return self._part(1)
        return empty_meta(self.shape, self.dtype)

    @imag.setter
    def imag(self, value: Any) -> None:
        check_fits(value, self.shape)

    @property
    def flat(self) -> AbstractArray:
        return self.ravel()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[AbstractArray]:
        if self.ndim < 2:
            raise NeedsData("iteration over elements")
        rest, step = (self.shape[1:], self.strides[1:]), self.strides[0]
        return (self._seen((*rest, position * step)) for position in range(len(self)))

    def __repr__(self) -> str:
        return f"<abstract array of shape {self.shape} and type {self.dtype}>"

    # ----- elements ---------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> AbstractArray:
        index = index if type(index) is tuple else (index,)
        if not [each for each in index if not _is_basic(each)]:
            return self._seen(views.indexed(self.shape, self.strides, index))
        from .abstract_index import gathered

        return gathered(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        entries = index if type(index) is tuple else (index,)
        if not [each for each in entries if type(each) is AbstractArray and each.dtype == bool]:
            check_fits(value, self[index].shape)

    # ----- views and copies -------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> AbstractArray:
        wanted = views.sizes_of(shape[0] if len(shape) == 1 else shape, self.size)
        if order == "F" or (order == "A" and self.flags.fnc):
            return self.T.reshape(wanted[::-1], copy=copy).T
        strides = views.reshaped(self.shape, self.strides, self.itemsize, wanted)
        if strides is not None:
            return self._seen((wanted, strides, 0))
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return empty_meta(wanted, self.dtype)

    def ravel(self, order: str = "C") -> AbstractArray:
        return self.reshape(-1, order="A" if order == "K" else order)

    def flatten(self, order: str = "C") -> AbstractArray:
        return empty_meta((self.size,), self.dtype)

    def transpose(self, *axes: Any) -> AbstractArray:
        order = views.permutation(axes, len(self.shape))
        return self._seen((tuple([self.shape[dim] for dim in order]), tuple([self.strides[dim] for dim in order]), 0))

    def swapaxes(self, first: int, second: int) -> AbstractArray:
        order = list(range(len(self.shape)))
        one, other = views.axis(first, len(order)), views.axis(second, len(order))
        order[one], order[other] = other, one
        return self.transpose(order)

    def squeeze(self, axis: Any = None) -> AbstractArray:
        given = range(self.ndim) if axis is None else axis if type(axis) is tuple else (axis,)
        gone = {views.axis(each, self.ndim) for each in given if axis is not None or self.shape[each] == 1}
        if any(self.shape[each] != 1 for each in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        return self[tuple([0 if dim in gone else slice(None) for dim in range(self.ndim)])]

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AbstractArray:
        return self._seen(views.diagonal(self.shape, self.strides, offset, axis1, axis2))

    def view(self, *args: Any) -> AbstractArray:
        if not args or args[0] is np.ndarray:
            return self._seen((self.shape, self.strides, 0))
        dtype = np.dtype(args[0])
        return self._seen(views.retyped(self.shape, self.strides, self.itemsize, dtype.itemsize), dtype)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype and _has_order(self.flags, order):
            return self
        return in_order(self.shape, dtype, order, [self])

    def copy(self, order: str = "C") -> AbstractArray:
        return in_order(self.shape, self.dtype, order, [self])

    def __copy__(self) -> AbstractArray:
        return self.copy("K")

    def byteswap(self, inplace: bool = False) -> AbstractArray:
        return self if inplace else self.copy()

    # ----- what changes in place --------------------------------------------------------------------------------------

    def fill(self, value: Any) -> None:
        """Nothing to be filled."""

    def sort(self, axis: int = -1, kind: Any = None, **options: Any) -> None:
        """Nothing to be sorted."""

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Nothing to be parted."""

    # ----- results of another shape or type ---------------------------------------------------------------------------

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        return self._statistic("mean", axis, dtype, out, keepdims)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        return self._statistic("var", axis, dtype, out, keepdims)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        return self._statistic("std", axis, dtype, out, keepdims)

    def _statistic(self, name: str, axis: Any, dtype: Any, out: Any, keepdims: Any) -> Any:
        if out is not None:
            return out
        result = dtype or getattr(np.ones(1, self.dtype), name)().dtype
        return reduced(self, axis, keepdims, np.dtype(result))

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        return reduced(self, axis, keepdims, np.dtype(np.intp), c_order=True)

    argmin = argmax

    def argsort(self, axis: Any = -1, kind: Any = None, **options: Any) -> AbstractArray:
        return empty_meta((self.size,) if axis is None else self.shape, np.dtype(np.intp))

    def argpartition(self, kth: Any, axis: Any = -1, kind: Any = None, **options: Any) -> AbstractArray:
        return self.argsort(axis)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return np.add.accumulate(self.ravel() if axis is None else self, axis or 0, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return np.multiply.accumulate(self.ravel() if axis is None else self, axis or 0, dtype, out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        options = options if out is None else {**options, "out": out}
        if min is None:
            return np.minimum(self, max, **options)
        clip = np._core.umath.clip  # type: ignore[attr-defined]  # the ufunc behind the function
        return np.maximum(self, min, **options) if max is None else clip(self, min, max, **options)

    def conj(self) -> AbstractArray:
        return self if self.dtype.kind != "c" else in_order(self.shape, self.dtype, "K", [self])

    conjugate = conj

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        return in_order(self.shape, self.dtype, "K", [self]) if out is None else out

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        if out is not None:
            return out
        picked = shape_of(indices)
        if axis is None:
            return empty_meta(picked, self.dtype)
        axis = range(self.ndim)[axis]
        return empty_meta((*self.shape[:axis], *picked, *self.shape[axis + 1 :]), self.dtype)

    def repeat(self, repeats: Any, axis: Any = None) -> AbstractArray:
        source = self.ravel() if axis is None else self
        axis = range(source.ndim)[axis or 0]
        if isinstance(repeats, AbstractArray):
            raise NeedsData("repeat: how often is in the elements")
        times = np.asarray(repeats)
        size = source.shape[axis] * int(times.reshape(-1)[0]) if times.size == 1 else int(times.sum())
        return empty_meta((*source.shape[:axis], size, *source.shape[axis + 1 :]), self.dtype)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
        return self.diagonal(offset, axis1, axis2).sum(-1, dtype, out)

    def dot(self, other: Any, out: Any = None) -> Any:
        return np.dot(self, other) if out is None else out

    def searchsorted(self, values: Any, side: str = "left", sorter: Any = None) -> Any:
        return empty_meta(shape_of(values), np.dtype(np.intp))

    def nonzero(self) -> Any:
        raise NeedsData("nonzero: the result's shape is in the elements")


class Flags:
    """What is known of how an array lies in memory."""

    __slots__ = ("_array",)

    aligned = writeable = True

    def __init__(self, array: AbstractArray) -> None:
        self._array = array

    @property
    def c_contiguous(self) -> bool:
        array = self._array
        return views.is_row_major(array.shape, array.strides, array.dtype.itemsize)

    @property
    def f_contiguous(self) -> bool:
        array = self._array
        return views.is_row_major(array.shape[::-1], array.strides[::-1], array.dtype.itemsize)

    @property
    def forc(self) -> bool:
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def carray(self) -> bool:
        return self.c_contiguous

    @property
    def owndata(self) -> bool:
        return self._array.base is None


def empty_meta(shape: Sequence[int], array_type: np.dtype[Any], strides: Shape | None = None) -> AbstractArray:
    """A new abstract array, contiguous unless there are strides, which count bytes."""
    sizes = tuple(map(int, shape))
    steps = contiguous_byte_strides(sizes, array_type.itemsize) if strides is None else strides
    return AbstractArray(sizes, steps, array_type)


def meta_array(array: Any) -> AbstractArray:
    """A new abstract array with the shape, strides and type of `array`."""
    return AbstractArray(tuple(array.shape), array.strides, array.dtype)


def is_abstract(array: Any) -> bool:
    """Whether an array has no elements to read or write."""
    return type(array) is AbstractArray


def shape_of(value: Any) -> Shape:
    """The shape of an array, a number or nested lists of numbers."""
    return value.shape if hasattr(value, "shape") else np.shape(value)


def check_fits(value: Any, shape: Shape) -> None:
    """Refuse to store what does not broadcast to `shape`."""
    source = shape_of(value)
    while len(source) > len(shape) and source[0] == 1:
        source = source[1:]
    try:
        fits = views.broadcast_shapes(tuple(source), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {source} into shape {shape}")


def _has_order(flags: Flags, order: str) -> bool:
    if order == "C":
        return flags.c_contiguous
    return order != "F" or flags.f_contiguous


def in_order(shape: Shape, dtype: np.dtype[Any], order: str, operands: Sequence[Any]) -> AbstractArray:
    """A new array of `shape`; order "K": its dimensions lie as NumPy's iterator walks through the operands."""
    if order == "K" and not all(each.flags.c_contiguous for each in operands if type(each) is AbstractArray):
        return empty_meta(shape, dtype, walked(shape, dtype.itemsize, operands))
    if order == "F" or (order == "A" and all(each.flags.fnc for each in operands)):
        return empty_meta(shape[::-1], dtype).T
    return empty_meta(shape, dtype)


def walked(shape: Shape, item: int, operands: Sequence[Any], from_rows: bool = False) -> Shape:
    """Dense strides, as NumPy's iterator gives them to new arrays; `from_rows`: as a concatenation does."""
    ndim = len(shape)
    steps = []
    for each in operands:
        if not hasattr(each, "strides"):
            continue
        missing = ndim - each.ndim
        own = zip(each.shape, each.strides, strict=True)
        steps.append([*[0] * missing, *[0 if size == 1 else abs(step) for size, step in own]])
    order = list(range(ndim)) if from_rows else list(range(ndim))[::-1]  # else from the innermost outwards
    for start in range(1, ndim):
        dim, place = order[start], start
        for before in range(start - 1, -1, -1):
            swap, open_ = False, True
            for strides in steps:
                outer, inner = strides[dim], strides[order[before]]
                if from_rows:
                    outer, inner = inner, outer
                if outer and inner:
                    if inner <= outer:
                        swap = False  # where operands disagree, rows win
                    elif open_:
                        swap = True
                    open_ = False
            if not open_:
                if not swap:
                    break
                place = before
        order.insert(place, order.pop(start))
    result, step = [0] * ndim, item
    for dim in reversed(order) if from_rows else order:
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def joined(shape: Shape, dtype: np.dtype[Any], parts: Sequence[Any]) -> AbstractArray:
    """The array that a concatenation of `parts` makes."""
    return empty_meta(shape, dtype, walked(shape, dtype.itemsize, parts, from_rows=True))


def reduced(
    array: AbstractArray, axis: Any, keepdims: Any, dtype: np.dtype[Any], c_order: bool = False
) -> AbstractArray:
    """The result of a reduction over `axis`."""
    ndim = array.ndim
    given = tuple(range(ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    axes = [range(ndim)[each] for each in given] if ndim else []
    gone = set(axes)
    if len(gone) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    shape = tuple([1 if dim in gone else size for dim, size in enumerate(array.shape)])
    index = tuple([0 if dim in gone else slice(None) for dim in range(ndim)])
    if c_order:
        result = empty_meta(shape, dtype)
    else:
        strides = tuple([step if size > 1 else 0 for size, step in zip(array.shape, array.strides, strict=True)])
        result = empty_meta(shape, dtype, walked(shape, dtype.itemsize, [Steps(array.shape, strides)]))
    return result if keepdims and keepdims is not np._NoValue else result[index]


class Steps:
    """Shape and strides alone."""

    def __init__(self, shape: Shape, strides: Shape) -> None:
        self.shape, self.strides, self.ndim = shape, strides, len(shape)


def _is_basic(entry: Any) -> bool:
    return (
        entry is None or entry is Ellipsis or (isinstance(entry, (int, slice, np.integer)) and type(entry) is not bool)
    )


def _reduction(name: str, ufunc: Any, with_dtype: bool) -> Callable[..., Any]:
    def typed(
        self: AbstractArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any
    ) -> Any:
        return ufunc.reduce(self, axis, dtype, out, keepdims is True, **options)

    def plain(self: AbstractArray, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        return typed(self, axis, None, out, keepdims, **options)

    method = typed if with_dtype else plain
    method.__name__ = name
    return method


def _refusal(name: str) -> Callable[..., Any]:
    def method(self: AbstractArray, *args: Any) -> Any:
        raise NeedsData(name)

    method.__name__ = name
    return method


_SUMS: dict[str, Any] = {"sum": np.add, "prod": np.multiply}
_EXTREMES: dict[str, Any] = {"max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}
for _name, _ufunc in _SUMS.items():
    setattr(AbstractArray, _name, _reduction(_name, _ufunc, True))
for _name, _ufunc in _EXTREMES.items():
    setattr(AbstractArray, _name, _reduction(_name, _ufunc, False))
for _name in ("__float__", "__int__", "__bool__", "__complex__", "__index__", "__contains__"):
    setattr(AbstractArray, _name, _refusal(_name))
for _name in ("item", "tolist", "tobytes"):
    setattr(AbstractArray, _name, _refusal(_name))


class _Abstract(Backend):
    """The backend of the meta device: what runs there says what it would make."""

    array_class = AbstractArray

    def asarray(self, value: Any) -> Any:
        return value if type(value) is AbstractArray else meta_array(np.asarray(value))

    def empty(self, shape: Shape, array_type: Any) -> Any:
        return empty_meta(shape, np.dtype(array_type))

    zeros = empty

    def from_host(self, array: Any) -> Any:
        return meta_array(array)

    def to_host(self, array: Any) -> Any:
        # A kernel that asks for one truth chooses a way, or refuses its arguments: no shape depends on that.
        if array.dtype == bool and array.size == 1:
            return np.zeros((), bool)
        raise NeedsData("a look at elements")

    def all_within(self, array: Any, low: int, high: int, op: str) -> bool:
        return True  # there are no elements that could be wrong

    def window(self, memory: Any, shape: Shape, array_type: Any, start: int, strides: Shape) -> Any:
        base = memory if memory.base is None else memory.base
        return AbstractArray(shape, strides, np.dtype(array_type), base, memory.start + start)

    def address(self, array: Any) -> int:
        start: int = array.start
        return start


install(_Abstract("meta"))
