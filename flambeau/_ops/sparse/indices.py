"""Indices of sparse matrices from one layout to another, for libraries that build matrices themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import int32, int64
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public


@primitive(None)
def _compressed(self: Array, size: int, dtype: Any) -> Array:
    return np.searchsorted(self, np.arange(size + 1)).astype(dtype.numpy)


@primitive(None)
def _coordinates_of_rows(self: Array, plain: Array, dtype: Any, transpose: bool) -> Array:
    rows = self.shape[-1] - 1
    counts = np.diff(self, axis=-1).reshape(-1)
    numbers = np.repeat(np.arange(counts.size), counts)
    places = (numbers % rows, plain.reshape(-1)) if rows else (numbers, plain.reshape(-1))
    batch = np.unravel_index(numbers // max(rows, 1), self.shape[:-1]) if self.ndim > 1 else ()
    return np.stack([*batch, *(places[::-1] if transpose else places)]).astype(dtype.numpy)


@public(method=False, out=True)
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among row numbers in rising order, and where the last one ends."""
    if input._array.ndim > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input._array.ndim} dimensional tensor.")
    return _compressed(input, size, int32 if out_int32 else int64)


@public(method=False, out=True)
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and column of each element, or its column and row, from where rows begin; batches come first."""
    return _coordinates_of_rows(crow_indices, col_indices, int32 if out_int32 else int64, transpose)
