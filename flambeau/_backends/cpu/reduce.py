"""Sums, products and extremes of large arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._codegen.reduce import COLUMN_CHUNK, ROW_CHUNK, reduce_columns, reduce_rows
from .dtypes import name_of_type

_KINDS = frozenset(("add", "maximum", "minimum"))


def reduced(kind: str, array: Any, dims: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Any:
    """`array` reduced by the ufunc called `kind`, computed in `dtype`; None: NumPy has to do it.

    The reduced dimensions are gone from the result.
    """
    given = name_of_type(array.dtype)
    if kind not in _KINDS or given is None or not array.flags.c_contiguous:
        return None
    if dims is None:
        dims = tuple(range(array.ndim))
    if not dims or max(dims) - min(dims) != len(dims) - 1:
        return None  # dimensions that are not neighbours
    first, last = min(dims), max(dims)
    outer = math.prod(array.shape[:first])
    length = math.prod(array.shape[first : last + 1])
    inner = math.prod(array.shape[last + 1 :])
    computed = name_of_type(dtype)
    shape = array.shape[:first] + array.shape[last + 1 :]
    while True:
        chunk = ROW_CHUNK if inner == 1 else COLUMN_CHUNK
        chunks = -(-length // chunk)
        if inner == 1:
            array = reduce_rows(kind, given, computed)(np.empty(outer * chunks, dtype), array, outer, length, chunk)
        else:
            array = reduce_columns(kind, given, computed)(
                np.empty(outer * chunks * inner, dtype), array, outer, length, inner, chunk
            )
        if chunks == 1:
            return array.reshape(shape)
        given, length = computed, chunks
