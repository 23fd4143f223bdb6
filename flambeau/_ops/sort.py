"""Order: sorting, the k largest, medians, distinct values, searching in sorted data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtype import COMPLEX, FLOAT, LEGACY_NAMES, int32, int64
from .._core.tensor import Tensor
from .dispatch import Array, primitive
from .extremes import value_selecting_gradient
from .registry import public
from .return_types import return_type
from .view import wrap_dim


def _check_order(name: str, input: Tensor) -> None:
    if input._kind.dtype.category == COMPLEX:
        raise RuntimeError(f"{name}(): complex dtypes have no order: got {LEGACY_NAMES[input.dtype]}")


def ordered_positions(array: Any, dim: int, descending: bool) -> Any:
    """Indices that sort `array` along `dim`, equal elements in their order; NaN counts as the largest."""
    if not descending:
        return np.argsort(_sortable(array), axis=dim, kind="stable")
    reversed_ = np.flip(_sortable(array), dim)
    places = np.flip(np.argsort(reversed_, axis=dim, kind="stable"), dim)
    return array.shape[dim] - 1 - places


def _sortable(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def _taken(array: Any, indices: Any, dim: int) -> Any:
    return np.take_along_axis(array, indices, dim)


def _scattered_back(grad: Tensor, result1: Tensor, self_sym_sizes: Any, dim: int) -> Tensor:
    return value_selecting_gradient(grad, result1, self_sym_sizes, dim, True)


@primitive("SortBackward0", self=_scattered_back)
def _sort(self: Array, dim: int, descending: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    indices = np.ascontiguousarray(ordered_positions(self, dim, descending))
    return _taken(self, indices, dim), indices.astype(np.int64, copy=False)


@public(out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements in order along `dim`, and where they were."""
    _check_order("sort", input)
    return return_type("sort", ("values", "indices"))(*_sort(input, wrap_dim(dim, input._array.ndim), descending))


@public()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort `input` along `dim`."""
    return sort(input, dim, descending).indices  # type: ignore[no-any-return]


@public(out=True)
def msort(input: Tensor) -> Tensor:
    """`input` sorted along its first dimension."""
    return sort(input, 0).values  # type: ignore[no-any-return]


@primitive("TopkBackward0", self=_scattered_back)
def _topk(self: Array, k: int, dim: int, largest: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    indices = np.ascontiguousarray(np.take(ordered_positions(self, dim, largest), range(k), axis=dim))
    return _taken(self, indices, dim), indices.astype(np.int64, copy=False)


@public(out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they are."""
    _check_order("topk", input)
    dim = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[dim] if input._array.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {dim} has size {size}")
    return return_type("topk", ("values", "indices"))(*_topk(input, k, dim, largest))


def _chosen_gradient(grad: Tensor, result1: Tensor, self_sym_sizes: Any, dim: int, keepdim: bool) -> Tensor:
    return value_selecting_gradient(grad, result1, self_sym_sizes, dim, keepdim)


def _chosen(array: Any, positions: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    values = _taken(array, positions, dim)
    if not keepdim:
        values, positions = np.squeeze(values, dim), np.squeeze(positions, dim)
    return np.array(values), np.array(positions, np.int64)


@primitive("KthvalueBackward0", self=_chosen_gradient)
def _kthvalue(self: Array, k: int, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    return _chosen(self, np.take(ordered_positions(self, dim, False), [k - 1], axis=dim), dim, keepdim)


@public(out=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest element along `dim`, and where it is."""
    _check_order("kthvalue", input)
    dim = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[dim] if input._array.ndim else 1
    if not 0 < k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}, the size {size}")
    return return_type("kthvalue", ("values", "indices"))(*_kthvalue(input, k, dim, keepdim))


def _median_positions(array: Any, dim: int, ignore_nan: bool) -> Any:
    """Where the lower median is along `dim`. A NaN is the median, unless NaN are left out."""
    order = ordered_positions(array, dim, False)
    size = array.shape[dim]
    if array.dtype.kind not in "fV":
        return np.take(order, [(size - 1) // 2], axis=dim)
    is_nan = np.isnan(_sortable(array))
    missing = is_nan.sum(axis=dim, keepdims=True)
    if ignore_nan:
        rank = np.maximum(size - missing - 1, 0) // 2
    else:
        rank = np.where(missing > 0, size - missing, (size - 1) // 2)
    return np.take_along_axis(order, rank, dim)


@primitive("MedianBackward1", self=_chosen_gradient)
def _median_dim(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    return _chosen(self, _median_positions(self, dim, False), dim, keepdim)


@primitive("NanmedianBackward1", self=_chosen_gradient)
def _nanmedian_dim(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    return _chosen(self, _median_positions(self, dim, True), dim, keepdim)


def _whole_median_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    attained = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return attained * (grad / attained.sum())


def _whole_median(array: Any, ignore_nan: bool) -> Any:
    flat = array.reshape(-1)
    if flat.size == 0:
        return np.array(np.nan if array.dtype.kind in "fV" else np.iinfo(array.dtype).min, array.dtype)
    return np.array(flat[_median_positions(flat, 0, ignore_nan)[0]])


@primitive("MedianBackward0", self=_whole_median_gradient)
def _median_all(self: Array) -> Array:
    return _whole_median(self, False)


@primitive("NanmedianBackward0", self=_whole_median_gradient)
def _nanmedian_all(self: Array) -> Array:
    return _whole_median(self, True)


def _median(name: str, whole: Any, along: Any, input: Tensor, dim: int | None, keepdim: bool) -> Any:
    _check_order(name, input)
    if dim is None:
        return whole(input)
    dim = wrap_dim(dim, input._array.ndim)
    if input._array.ndim and input._array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return return_type(name, ("values", "indices"))(*along(input, dim, keepdim))


@public(out=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median; of an even number of elements the lower of the two in the middle."""
    return _median("median", _median_all, _median_dim, input, dim, keepdim)


@public(out=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are not NaN."""
    return _median("nanmedian", _nanmedian_all, _nanmedian_dim, input, dim, keepdim)


@primitive("ModeBackward0", self=_chosen_gradient)
def _mode(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64)
    lines = np.moveaxis(self, dim, -1)
    positions = np.zeros((*lines.shape[:-1], 1), np.int64)
    for place in np.ndindex(lines.shape[:-1]):
        line = _sortable(lines[place])
        values, counts = np.unique(line, return_counts=True, equal_nan=False)
        positions[place] = np.flatnonzero(line == values[np.argmax(counts)])[-1] if counts.max() > 0 else 0
    return _chosen(self, np.moveaxis(positions, -1, dim), dim, keepdim)


@public(out=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along `dim` (the smallest of several), and an index of it."""
    dim = wrap_dim(dim, input._array.ndim)
    if input._array.ndim and input._array.shape[dim] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    return return_type("mode", ("values", "indices"))(*_mode(input, dim, keepdim))


# ----- distinct values --------------------------------------------------------------------------------------------


@primitive(None)
def _unique(self: Array, dim: int | None) -> Any:
    values, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    shape = self.shape if dim is None else (self.shape[dim],)
    return np.ascontiguousarray(values), inverse.reshape(shape).astype(np.int64), counts.astype(np.int64)


@primitive(None)
def _unique_consecutive(self: Array, dim: int | None) -> Any:
    lines = self.reshape(-1) if dim is None else np.moveaxis(self, dim, 0)
    if len(lines) == 0:
        return np.array(self), np.zeros(self.shape if dim is None else (0,), np.int64), np.zeros(0, np.int64)
    changes = (lines[1:] != lines[:-1]).reshape(len(lines) - 1, -1).any(1)
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    inverse = np.cumsum(np.concatenate([[0], changes])).astype(np.int64)
    counts = np.diff(np.append(starts, len(lines))).astype(np.int64)
    values = lines[starts] if dim is None else np.moveaxis(lines[starts], 0, dim)
    return np.ascontiguousarray(values), inverse.reshape(self.shape) if dim is None else inverse, counts


def _with_extras(results: tuple[Tensor, ...], inverse: bool, counts: bool) -> Any:
    wanted = [results[0], *([results[1]] if inverse else []), *([results[2]] if counts else [])]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


@public()
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements (or, with `dim`, the distinct slices), in order."""
    wrapped = None if dim is None else wrap_dim(dim, input._array.ndim)
    return _with_extras(_unique(input, wrapped), return_inverse, return_counts)


@public()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without those that equal the one before."""
    wrapped = None if dim is None else wrap_dim(dim, input._array.ndim)
    return _with_extras(_unique_consecutive(input, wrapped), return_inverse, return_counts)


# ----- searching and counting -------------------------------------------------------------------------------------


@primitive(None)
def _searchsorted(sorted_sequence: Array, values: Array, right: bool, dtype: Any) -> Array:
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, values, side)).astype(dtype.numpy)
    result = np.empty(values.shape, dtype.numpy)
    for place in np.ndindex(values.shape[:-1]):
        result[place] = np.searchsorted(sorted_sequence[place], values[place], side)
    return result


def _scalar_like(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else like.new_tensor(value)


@public(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Tensor:
    """Where to insert each value so that the last dimension of `sorted_sequence` stays sorted."""
    values = _scalar_like(input, sorted_sequence)
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    if sorted_sequence.ndim > 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
            f"input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value tensor {list(values.shape)}"
        )
    return _searchsorted(sorted_sequence, values, right or side == "right", int32 if out_int32 else int64)  # type: ignore[no-any-return]


@public(method=False, out=True)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket between `boundaries` into which each value falls."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)  # type: ignore[no-any-return]


@primitive(None)
def _bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if weights is None:
        return np.bincount(self, minlength=minlength).astype(np.int64)
    counted = np.bincount(self, weights=weights, minlength=minlength)
    return counted.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


@public()
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, 2, ... occurs."""
    if input.ndim != 1 or input._kind.dtype.category >= FLOAT or (input.numel() and bool((input < 0).any())):
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs: got {input.dtype}, shape {list(input.shape)}")
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    return _bincount(input, weights, minlength)  # type: ignore[no-any-return]


@primitive(None)
def _histc(self: Array, bins: int, low: float, high: float) -> Array:
    flat = self.reshape(-1)
    inside = flat[(flat >= low) & (flat <= high)].astype(np.float64)
    places = np.minimum(((inside - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return np.bincount(places, minlength=bins).astype(self.dtype)


@public(out=True)
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements fall into each of `bins` equal parts of the range; equal bounds mean the data's own."""
    if bins <= 0:
        raise RuntimeError(f"bins must be > 0, got {bins}")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = float(input.amin().item()), float(input.amax().item())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"max must be larger than min: got [{low}, {high}]")
    return _histc(input, bins, low, high)  # type: ignore[no-any-return]


def _interpolated(input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool, name: str) -> Tensor:
    if input._kind.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, not {input.dtype}")
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    levels = _scalar_like(q, input)
    if levels.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if bool((levels < 0).any()) or bool((levels > 1).any()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    lines = input.reshape(-1) if dim is None else input.movedim(dim, -1) if input.ndim else input.reshape(1)
    ordered = sort(lines, -1).values
    size = ordered.shape[-1]
    missing = ordered.isnan().sum(-1, keepdim=True)
    if ignore_nan:
        ranks = levels.reshape(-1) * (size - missing - 1).clamp(min=0).to(input.dtype)
    else:
        ranks = (levels.reshape(-1) * (size - 1)).expand((*ordered.shape[:-1], levels.numel()))
        ranks = ranks.masked_fill(missing > 0, float(size - 1))
    below, above = ranks.floor(), ranks.ceil()
    if interpolation == "lower":
        above = below
    elif interpolation == "higher":
        below = above
    elif interpolation == "nearest":
        below = above = ranks.round()
    left, right = ordered.gather(-1, below.long()), ordered.gather(-1, above.long())
    if interpolation == "midpoint":
        found = (left + right) / 2
    else:
        found = left.lerp(right, (ranks - below)) if interpolation == "linear" else left
    found = found.movedim(-1, 0)
    if keepdim:
        kept = (1,) * input.ndim if dim is None else None
        found = found.reshape((found.shape[0], *kept)) if kept is not None else found.unsqueeze(wrap_dim(dim or 0, input.ndim) + 1)
    return found if levels.ndim else found.squeeze(0)  # type: ignore[no-any-return]


@public(out=True)
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The `q`-quantiles of the elements, of all or along `dim`."""
    return _interpolated(input, q, dim, keepdim, interpolation, False, "quantile")


@public(out=True)
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The `q`-quantiles of the elements that are not NaN."""
    return _interpolated(input, q, dim, keepdim, interpolation, True, "nanquantile")
