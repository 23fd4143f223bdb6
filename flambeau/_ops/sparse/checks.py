"""What must hold of the parts of a sparse tensor: what does not is refused at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.sparse import CompressedArray, CooArray, flat_indices
from ..._core.backend import read, to_host
from ..._core.sparse import LAYOUT_NAMES, SparseTensor


def is_sorted(array: CooArray) -> bool:
    """Whether the coordinates rise, so that each is there once."""
    flat = flat_indices(array.indices, array.shape)
    return bool(read((flat[1:] > flat[:-1]).all()))


def check_sparse(value: SparseTensor) -> None:
    """Refuse a sparse tensor whose parts do not go together, as they might in a file."""
    array = value._array
    if isinstance(array, CompressedArray):
        check_compressed(array)
        return
    indices, values = array.indices, array.values
    if indices.ndim != 2 or not values.ndim or indices.dtype != np.int64 or indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz: indices have shape {list(indices.shape)}, values "
            f"{list(values.shape)}"
        )
    if len(array.shape) != indices.shape[0] + values.ndim - 1:
        raise RuntimeError(f"a sparse tensor of size {list(array.shape)} cannot have indices {list(indices.shape)}")
    check_coordinates(indices, values, array.shape)
    if array.coalesced and not is_sorted(array):
        raise RuntimeError("the indices of a coalesced tensor must be sorted and different")


def check_compressed(array: CompressedArray) -> None:
    """Refuse a compressed matrix whose parts do not go together."""
    kind = LAYOUT_NAMES[array.layout]
    compressed, plain = ("crow_indices", "col_indices") if array.by_rows else ("ccol_indices", "row_indices")
    starts, places, values, shape = array.compressed, array.plain, array.values, array.shape
    if starts.ndim != 1 or places.ndim != 1 or values.ndim != (3 if array.of_blocks else 1):
        raise NotImplementedError(
            f"{kind}: batches and dense dimensions are not implemented: {compressed}, {plain} and values have "
            f"{starts.ndim}, {places.ndim} and {values.ndim} dimensions"
        )
    if starts.dtype != places.dtype:
        raise RuntimeError(f"{compressed} and {plain} must have the same dtype, not {starts.dtype} and {places.dtype}")
    if len(shape) != 2:
        raise RuntimeError(f"size of a {kind} tensor must have two dimensions, but it is {list(shape)}")
    if any(length % block for length, block in zip(shape, array.blocksize, strict=True)):
        raise RuntimeError(f"tensor shape {list(shape)} must be divisible by blocksize {list(array.blocksize)}")
    counts = [length // block for length, block in zip(shape, array.blocksize, strict=True)]
    groups, others = counts if array.by_rows else counts[::-1]
    if starts.shape[0] != groups + 1:
        what = "rows" if array.by_rows else "columns"
        raise RuntimeError(
            f"{compressed}.shape[-1] must be equal to the number of {what} + 1 ({groups + 1}), but got "
            f"{starts.shape[0]}"
        )
    if places.shape[0] != values.shape[0]:
        raise RuntimeError(
            f"number of dimensions and lengths of {plain} and values must be the same, but got {list(places.shape)} "
            f"and {list(values.shape)}"
        )
    if read(starts[0] != 0) or read(starts[-1] != places.shape[0]) or read((starts[1:] < starts[:-1]).any()):
        raise RuntimeError(
            f"{compressed} must begin with 0, rise, and end with the number of values ({places.shape[0]}), but they "
            f"are {to_host(starts).tolist() if starts.size < 20 else '...'}"
        )
    if places.size and (read(places.min() < 0) or read(places.max() >= others)):
        raise RuntimeError(
            f"{plain} must be from 0 to {others - 1}, but they are {read(places.min())} to {read(places.max())}"
        )


def check_coordinates(indices: Any, values: Any, shape: tuple[int, ...]) -> None:
    """Coordinates outside of the tensor would be read from other memory later on: they are refused at once."""
    sparse = indices.shape[0]
    if tuple(values.shape[1:]) != shape[sparse:]:
        raise RuntimeError(
            f"values and sparse tensor shape are inconsistent: the values have dense dimensions "
            f"{list(values.shape[1:])}, the size {list(shape)} leaves {list(shape[sparse:])}"
        )
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(shape)}")
    if not indices.shape[1]:
        return
    lowest, highest = (to_host(each).tolist() for each in (indices.min(axis=1), indices.max(axis=1)))
    for dim, (low, high) in enumerate(zip(lowest, highest, strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found index {high}"
            )
