"""Copies of large arrays into new memory: with other strides, backwards, in part, or as another type of float."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...._codegen.elements.interleave import MOST, interleaved
from ...._codegen.elements.lines import reversed_lines
from ...._codegen.elements.pointwise import MOST_DIMENSIONS
from ...._codegen.elements.transpose import transposed_copy
from ...._codegen.elements.triangle import triangle as _triangle
from ...._codegen.expr import Program
from ...._codegen.ir import COMPILES
from ...._core.geometry.layout import joint_dimensions
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
    bits = BITS.get(given.itemsize) if given == wanted else None
    copier = _copier(given, wanted) if bits is None else _mover(bits)
    if copier is None or target.ndim > MOST_DIMENSIONS:
        return False
    if given == wanted:
        if target.flags.c_contiguous and (_turned(target, source) or _interleaved(target, source)):
            return True
        if num_threads() == 1 and _has_rows(source) and _has_rows(target):
            np.copyto(target, source)  # by rows one thread of NumPy's is as quick as one here
            return True
    flat = "c" if source.flags.c_contiguous and target.flags.c_contiguous else None
    copier.into((target,), (source,), flat)
    return True


def copying(given: Any, wanted: Any) -> Any:
    """A function (target, source) that copies arrays of any strides, with elements of one dtype into those of another.

    It is a kernel, if there is one: then it can be part of a recorded program.
    """
    copier = _copier(given, wanted) if COMPILES else None
    return np.copyto if copier is None else copier.strided()


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
    bits = BITS.get(source.itemsize)
    if bits is None or min(rows, columns) < 4 or any(step % source.itemsize for step in source.strides):
        return False
    batch, batch_step = (source.shape[0], source.strides[0] // source.itemsize) if source.ndim == 3 else (1, 0)
    step = source.strides[-1] // source.itemsize
    transposed_copy(bits)(target, source, batch, rows, columns, batch_step, step)
    return True


_AROUND = 3
"""Dimensions around lines that are interleaved."""


def _interleaved(target: Any, source: Any) -> bool:
    """Fill `target`, if its last dimension takes one element of each of a few lines of `source` in turn."""
    bits = BITS.get(source.itemsize)
    if bits is None or source.ndim < 2 or not 2 <= source.shape[-1] <= MOST:
        return False
    length, step = source.shape[-2], source.strides[-2]
    if step != source.itemsize or length < _ROW or source.strides[-1] == step * length:
        return False
    sizes, (distances,) = joint_dimensions(source.shape[:-2], [source.strides[:-2]])
    missing = _AROUND - len(sizes)
    if missing < 0:
        return False
    around = (*[1] * missing, *sizes)
    interleaved(bits, source.shape[-1])(target, source, *around, length, *[0] * missing, *distances, source.strides[-1])
    return True


def triangle(array: Any, diagonal: int, lower: bool) -> Any:
    """The matrices of an array, without what is above the diagonal, or with `lower` false below it; None: too few."""
    if array.size < MANY or not COMPILES or array.dtype.hasobject:
        return None
    rows, columns = array.shape[-2:]
    diagonal = min(max(diagonal, -rows - 1), columns + 1)
    source = contiguous(array)
    lines = array.size // columns
    return _triangle(lower)(np.empty(array.shape, array.dtype), source, lines, rows, columns, array.itemsize, diagonal)


def flipped(array: Any, dims: tuple[int, ...]) -> Any:
    """A copy with the order along `dims` reversed, if these are all dimensions from one of them on; else None."""
    bits, first = BITS.get(array.itemsize), array.ndim - len(dims)
    if bits is None or not dims or min(dims) < first or not array.size or not array.flags.c_contiguous:
        return None
    length = math.prod(array.shape[first:])  # together they are one line
    return reversed_lines(bits)(np.empty(array.shape, array.dtype), array, array.size // length, length)


def _exact(given: str, wanted: str) -> bool:
    """Whether the conversion rounds at most once, as NumPy's does."""
    return {given, wanted} <= _NARROW or {given, wanted} <= _WIDE or (given in _INTEGERS and wanted == "float32")


@functools.cache
def _mover(bits: str) -> Pointwise:
    """The kernels that copy elements of a size as they are."""
    dtype = np.dtype(bits)
    return Pointwise(Program((("input", bits, 0),), (0,)), [dtype], [dtype])


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
