"""Copies of large arrays into new memory: with other strides, backwards, or as another type of float."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.elements.lines import reversed_lines
from ...._codegen.elements.pointwise import MOST_DIMENSIONS
from ...._codegen.elements.turn import turned_copy
from ...._codegen.expr import Program
from ...._codegen.ir import COMPILES
from ...._codegen.types import SCALARS
from ...._core.arrays.quick import name_of
from ...._core.process.threads import num_threads
from .pointwise import Pointwise

BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
"""Elements that are moved alone, by their size: their bits as integers."""
MANY = 2**16
"""From so many elements on several threads copy sooner than one."""
_ROW = 8
_NARROW = frozenset(("float32", "bfloat16", "float16"))
_WIDE = frozenset(("float32", "float64"))
_INTEGERS = frozenset(("uint8", "int8", "int16", "int32", "int64", "bool"))


def copy_into(target: Any, source: Any) -> bool:
    """Fill `target`, whose memory is new, with the elements of `source`, of the same shape; False: it was not done."""
    if not COMPILES:
        return False
    given, wanted = source.dtype, target.dtype
    copier = _copier(given, wanted)
    if copier is None or target.ndim > MOST_DIMENSIONS:
        return False
    if given == wanted:
        if target.flags.c_contiguous and _turned(target, source):
            return True
        if num_threads() == 1 and _has_rows(source) and _has_rows(target):
            np.copyto(target, source)  # by rows one thread of NumPy's is as quick as one here
            return True
    flat = "c" if source.flags.c_contiguous and target.flags.c_contiguous else None
    copier.into((target,), (source,), flat)
    return True


def _has_rows(array: Any) -> bool:
    """Whether rows are long enough to be copied as such, and their elements neighbours."""
    return bool(array.ndim and array.shape[-1] >= _ROW and array.strides[-1] == array.itemsize)


def contiguous(array: Any) -> Any:
    """`array` itself if its elements lie one after another, else a copy where they do."""
    if array.flags.c_contiguous:
        return array
    if array.size < MANY or type(array) is not np.ndarray:
        return array.copy("C")
    result = np.empty(array.shape, array.dtype)
    return result if copy_into(result, array) else array.copy("C")


def _turned(target: Any, source: Any) -> bool:
    """Fill `target` block by block, if the rows of `source` lie in memory where its columns should."""
    if source.ndim not in (2, 3) or source.strides[-2] != source.itemsize or source.strides[-1] <= source.itemsize:
        return False
    rows, columns = source.shape[-2:]
    if min(rows, columns) < 4 or any(step % source.itemsize for step in source.strides):
        return False
    batch, batch_step = (source.shape[0], source.strides[0] // source.itemsize) if source.ndim == 3 else (1, 0)
    step = source.strides[-1] // source.itemsize
    turned_copy(name_of(source.dtype))(target, source, batch, rows, columns, batch_step, step)
    return True


def flipped(array: Any, dims: tuple[int, ...]) -> Any:
    """A copy with the order along `dims` reversed, if these are all dimensions from one of them on; else None."""
    bits, first = BITS.get(array.itemsize), array.ndim - len(dims)
    if bits is None or not dims or min(dims) < first or not array.size or not array.flags.c_contiguous:
        return None
    length = math.prod(array.shape[first:])  # together they are one line
    return reversed_lines(bits)(np.empty(array.shape, array.dtype), array, array.size // length, length)


def _exact(given: str, wanted: str) -> bool:
    """Whether the conversion rounds at most once, as NumPy's does."""
    if given == wanted:
        return given in SCALARS
    return {given, wanted} <= _NARROW or {given, wanted} <= _WIDE or (given in _INTEGERS and wanted == "float32")


@functools.cache
def _copier(given: np.dtype[Any], wanted: np.dtype[Any]) -> Pointwise | None:
    """The kernels for a pair of dtypes; None: NumPy has to do it."""
    if not (given.isnative and _exact(given.name, wanted.name)):
        return None
    computed = "float32" if given.name in _NARROW else given.name
    steps: list[tuple[Any, ...]] = [("input", computed, 0)]
    goal = "float32" if wanted.name in _NARROW else wanted.name
    if goal != computed:
        steps.append(("cast", goal, 0))
    return Pointwise(Program(tuple(steps), (len(steps) - 1,)), [given], [wanted])
