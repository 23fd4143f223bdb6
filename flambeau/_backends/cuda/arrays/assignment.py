"""Elements of device arrays written from others, copied, and converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._codegen.cuda.types import TYPES
from ...._core.arrays.quick import name_of
from ..elementwise.pointwise import Pointwise
from ..runtime.driver import driver
from .array import DeviceArray, Layout, dense_like, empty, form_of, from_host, of_form, to_host
from .host import by_host
from .raw_types import RAW
from .ufuncs import cast, selection, store


def _raw(array: DeviceArray) -> DeviceArray:
    """An array as one of a type that generated code knows, for what only moves elements."""
    if name_of(array.form.dtype) in TYPES:
        return array
    return array.view(RAW[array.form.dtype.itemsize])


def assign(target: DeviceArray, source: Any) -> None:
    """Overwrite the elements of `target` by those of an array or a number, which broadcast to it."""
    if not target.form.size:
        return
    kind = target.form.dtype
    if type(source) is not DeviceArray:
        source = np.asarray(source)
        if source.ndim:
            raise TypeError(f"an array of the host, of shape {source.shape}, is assigned to one on cuda")
        if name_of(kind) not in TYPES:
            source = np.asarray(source.astype(kind)).view(RAW[kind.itemsize])
            target = _raw(target)
        else:
            source = source.astype(kind)
        if target.form.flags.c_contiguous and not source.tobytes().strip(b"\0"):
            driver().clear(target.pointer, target.form.nbytes)
            return
        _fill(target, source[()])
        return
    given = source.form
    if given.shape != target.form.shape:
        if given.ndim > target.form.ndim and not any(
            size != 1 for size in given.shape[: given.ndim - target.form.ndim]
        ):
            source = source.reshape(given.shape[given.ndim - target.form.ndim :])
        elif np.broadcast_shapes(given.shape, target.form.shape) != target.form.shape:
            raise ValueError(f"could not broadcast input array from shape {given.shape} into shape {target.form.shape}")
    if given.dtype == kind:
        if _is_one_block(given, target.form):
            if source.pointer != target.pointer:
                if _overlap(source, target):
                    source = source.copy()
                driver().copy(target.pointer, source.pointer, given.nbytes)
            return
        source, target = _raw(source), _raw(target)
    compiled = cast(source.form.dtype, target.form.dtype)
    if compiled is None:
        host = to_host(source).astype(kind)
        assign(target, from_host(host))
        return
    store(compiled, target, (source,))


def _is_one_block(form: Any, other: Any) -> bool:
    """Whether arrays of these forms have their elements in the same order, with no gaps between them."""
    if form.shape != other.shape:
        return False
    if form.flags.c_contiguous:
        return bool(other.flags.c_contiguous)
    return bool(form.strides == other.strides == dense_like(form))


def _overlap(first: DeviceArray, second: DeviceArray) -> bool:
    return first.pointer < second.pointer + second.nbytes and second.pointer < first.pointer + first.nbytes


def _fill(target: DeviceArray, value: Any) -> None:
    compiled = cast(target.form.dtype, target.form.dtype)
    assert compiled is not None
    compiled.into((target,), (value,))


_copies: dict[Layout, tuple[Any, Pointwise] | None] = {}
"""By the layout of arrays with gaps the form of a copy row by row, and what writes it; None: `assign` does."""
_MOST_COPIES = 4096


def _copy_of(form: Any) -> tuple[Any, Pointwise] | None:
    compiled = cast(form.dtype, form.dtype) if form.size and not form.flags.c_contiguous else None
    return None if compiled is None else (form_of(form.shape, form.dtype), compiled)


def copied(self: DeviceArray, order: str = "C") -> DeviceArray:
    """A copy in memory of its own."""
    if order == "C":
        try:
            known = _copies[self.layout]
        except KeyError:
            if len(_copies) >= _MOST_COPIES:
                _copies.clear()
            known = _copies[self.layout] = _copy_of(self.form)
        if known is not None:
            target, compiled = known
            moved = of_form(target)
            compiled.into((moved,), (self,))
            return moved
    form = self.form
    strides = None
    if order == "F" or (order == "A" and form.flags.f_contiguous):
        strides = column_major(form)
    elif order == "K" and not form.flags.c_contiguous:
        strides = dense_like(form)
    made = empty(form.shape, form.dtype, strides)
    if strides is not None and form.size and form.strides == strides:
        driver().copy(made.pointer, self.pointer, form.nbytes)
    else:
        assign(made, self)
    return made


def column_major(form: Any) -> tuple[int, ...]:
    """The strides, in bytes, of a copy with the first dimension innermost, without gaps."""
    strides, step = [], form.itemsize
    for size in form.shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


def astype(self: DeviceArray, dtype: Any, order: str = "K", copy: bool = True, **options: Any) -> DeviceArray:
    """The elements as another type."""
    dtype = np.dtype(dtype)
    form = self.form
    if dtype == form.dtype:
        return self.copy(order) if copy else self
    strides = None
    if order == "K" and not form.flags.c_contiguous:
        strides = tuple([step // form.itemsize * dtype.itemsize for step in dense_like(form)])
    made = empty(form.shape, dtype, strides)
    assign(made, self)
    return made


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """`np.copyto` for arrays of the device."""
    if type(dst) is not DeviceArray:
        raise TypeError("copyto: an array on cuda is copied to one of the host")
    if where is True:
        assign(dst, src)
        return
    if type(where) is not DeviceArray:
        where = from_host(np.asarray(where))
    if type(src) is not DeviceArray:
        src = np.asarray(src).astype(dst.dtype)[()]
    compiled = selection(where.dtype, src.dtype, dst.dtype, dst.dtype)
    if compiled is None:
        by_host(np.copyto, (dst, src), {"casting": casting, "where": where})
        return
    store(compiled, dst, (where, src, dst))
