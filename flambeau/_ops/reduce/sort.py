"""Order: sorting, the k largest, medians, distinct values, searching in sorted data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.quick import dim_moved, name_of
from ..._core.backend import LARGE, as_array, backend_of_array, read
from ..._core.dtype import BOOL, COMPLEX, int32, int64
from ..._core.geometry.layout import contiguous_array, empty_array, strides_like
from ..._core.modes import THREAD
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.abstract.meta import shape_in_elements
from ..._dispatch.arguments.promotion import is_number, result_type_of
from ..._dispatch.axes import Along, Whole
from ..._dispatch.changes.exact_out import refuse_out, store_apart, store_exactly
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.public.registry import public
from ..._dispatch.public.return_types import named, return_type
from ..create.constants import tensor
from ..index.gather import value_selecting_reduction_backward
from ..index.masked import where
from ..shape.view import wrap_dim
from .extremes import check_nonempty
from .reductions import no_kernel

SORT = return_type("sort", ("values", "indices"))
TOPK = return_type("topk", ("values", "indices"))
KTHVALUE = return_type("kthvalue", ("values", "indices"))
MEDIAN = return_type("median", ("values", "indices"))
NANMEDIAN = return_type("nanmedian", ("values", "indices"))
MODE = return_type("mode", ("values", "indices"))


def ordered_positions(array: Any, dim: int, descending: bool) -> Any:
    """Indices that sort `array` along `dim`, equal elements in their order; NaN counts as the largest."""
    return as_int64(_ordered(array, dim, descending))


def as_int64(positions: Any) -> Any:
    """Positions as int64: NumPy's are as wide as an address, and in the browser that is 32 bits."""
    return positions if positions.dtype.itemsize == 8 else positions.astype(np.int64)


def _ordered(array: Any, dim: int, descending: bool) -> Any:
    array = _narrowed(array) if array.dtype.kind in "iu" else _sortable(array)
    if not descending:
        return array.argsort(dim, "stable")
    if array.dtype.kind in "iub":
        return np.invert(array).argsort(dim, "stable")  # ~x falls as x rises, without overflow
    negative = np.negative(array)
    if array.size and not read(np.isnan(np.maximum.reduce(negative, None))):
        return negative.argsort(dim, "stable")
    backwards = (slice(None),) * dim + (slice(None, None, -1),)
    return array.shape[dim] - 1 - array[backwards].argsort(dim, "stable")[backwards]


def _narrowed(array: Any) -> Any:
    """Integers that lie close together as 16 bits in the same order: those NumPy sorts by their digits."""
    if type(array) is not np.ndarray or array.dtype.itemsize <= 2 or array.size < LARGE:
        return array
    lowest = np.minimum.reduce(array, None)
    if int(np.maximum.reduce(array, None)) - int(lowest) >= 2**16:
        return array
    return (array - lowest).astype(np.uint16)


def _sortable(array: Any) -> Any:
    return array.astype(np.float32) if name_of(array.dtype) == "bfloat16" else array


def taken(array: Any, indices: Any, dim: int) -> Any:
    """The elements of `array` at `indices` along `dim`; for few dimensions quicker than `np.take_along_axis`."""
    if array.ndim == 1:
        return array[indices]
    if array.ndim == 2:
        rows, columns = indices.shape
        if dim == 1:
            return array[np.arange(rows, like=array)[:, None], indices]
        return array[indices, np.arange(columns, like=array)]
    return np.take_along_axis(array, indices, dim)


def _scattered_back(grad: Tensor, indices: Tensor, self_sym_sizes: Any, dim: int) -> Tensor:
    return value_selecting_reduction_backward(grad, indices, self_sym_sizes, dim, True)


def _sorted(array: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    if array.ndim == 0:
        return array.copy(), np.zeros((), np.int64, like=array)
    done = arrays.leading(array, dim, array.shape[dim], descending, descending)
    if done is None:
        indices = ordered_positions(array, dim, descending)
        done = taken(array, indices, dim), indices
    values, indices = done
    return as_laid_out(values, array), as_laid_out(indices, array)


def as_laid_out(result: Any, source: Any) -> Any:
    """`result` with the strides that a copy of `source` has."""
    if source.flags.c_contiguous:
        return contiguous_array(result)
    placed = empty_array(source.shape, strides_like(source, None), result.dtype, backend_of_array(result))
    placed[...] = result
    return placed


@several("SortBackward0", axes=Along("dim"), results=("values", "indices"), self=_scattered_back)
def _sort(self: Array, dim: int, descending: bool) -> Any:
    return _sorted(self, dim, descending)


@several("SortBackward1", axes=Along("dim"), results=("values", "indices"), self=_scattered_back)
def _stable_sort(self: Array, dim: int, descending: bool) -> Any:
    return _sorted(self, dim, descending)


@public()
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: Any = None) -> Any:
    """The elements in order along `dim`, and where they were; equal ones in their order, asked for or not."""
    if input._kind.dtype.category == COMPLEX:
        raise RuntimeError(f"Sort does not support complex dtypes on CPU: got {input.dtype}")
    op = _sort if stable is None else _stable_sort
    return store_exactly(named(SORT, op(input, wrap_dim(dim, input._array.ndim), descending)), out)


@public(out=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that sort `input` along `dim`."""
    order: Tensor = sort(input, dim, descending)[1]
    return order


@public()
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """`input` sorted along its first dimension."""
    ordered: Tensor = sort(input, 0)[0]
    return store_exactly(ordered, out)


@several("TopkBackward0", axes=Along("dim"), results=("values", "indices"), self=_scattered_back)
def _topk(self: Array, k: int, dim: int, largest: bool) -> Any:
    if self.ndim == 0:
        return (
            (self.copy(), np.zeros((), np.int64, like=self))
            if k
            else (self[None][:0], np.zeros(0, np.int64, like=self))
        )
    done = arrays.leading(self, dim, k, largest, largest)
    if done is not None:
        return done
    first = (slice(None),) * dim + (slice(k),)
    if self.shape[dim] > 64 + 4 * k and self.dtype.kind in "iuf":
        indices = _leading_positions(self, k, dim, largest)
    else:
        indices = ordered_positions(self, dim, largest)[first]
    return contiguous_array(taken(self, indices, dim)), contiguous_array(indices)


def _leading_positions(array: Any, k: int, dim: int, largest: bool) -> Any:
    """The positions of the `k` first in order, without a sort of all: sorts only those that a partition picks."""
    size = array.shape[dim]
    pick = (slice(None),) * dim + (slice(size - k, None) if largest else slice(k),)
    picked = as_int64(array.argpartition(min(size - k if largest else k, size - 1), dim)[pick])
    return np.take_along_axis(picked, ordered_positions(np.take_along_axis(array, picked, dim), dim, largest), dim)


@public()
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they are."""
    category = input._kind.dtype.category
    if category in (COMPLEX, BOOL):
        word = "complex" if category == COMPLEX else "bool"
        raise RuntimeError(f"topk does not support {word} dtypes on CPU: got {input.dtype}")
    dim = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[dim] if input._array.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {dim} has size {size}")
    return store_exactly(named(TOPK, _topk(input, k, dim, largest)), out)


def _chosen_gradient(grad: Tensor, indices: Tensor, self_sym_sizes: Any, dim: int, keepdim: bool) -> Tensor:
    return value_selecting_reduction_backward(grad, indices, self_sym_sizes, dim, keepdim)


def _chosen(array: Any, positions: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    values = taken(array, positions, dim)
    if not keepdim:
        shape = values.shape[:dim] + values.shape[dim + 1 :]
        values, positions = values.reshape(shape), positions.reshape(shape)
    return np.array(values, order="C", like=array), np.array(positions, np.int64, order="C", like=array)


def _chosen_shapes(self: Array, dim: int, keepdim: bool) -> Any:
    kept = np.empty_like(self, shape=[1 if at == dim else size for at, size in enumerate(self.shape)])
    values = kept if keepdim or not self.ndim else np.squeeze(kept, dim)
    return values, np.empty_like(values, np.int64)


@several(
    "KthvalueBackward0",
    axes=Along("dim"),
    results=("values", "indices"),
    self=_chosen_gradient,
    shape=lambda self, k, dim, keepdim: _chosen_shapes(self, dim, keepdim),
)
def _kthvalue(self: Array, k: int, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64, like=self)
    return _selected(self, dim, keepdim, "given", k - 1)


@public()
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The `k`-th smallest element along `dim`, and where it is."""
    if input._kind.dtype.category in (BOOL, COMPLEX):
        raise no_kernel("kthvalue_cpu", input)
    dim = wrap_dim(dim, input._array.ndim)
    check_nonempty("kthvalue", input, dim)
    size = input._array.shape[dim] if input._array.ndim else 1
    if not 0 < k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}, the size {size}")
    result = named(KTHVALUE, _kthvalue(input, k, dim, keepdim))
    return result if out is None else store_apart(result, out, (input,))


def _selected(array: Any, dim: int, keepdim: bool, kind: str, rank: int = 0) -> tuple[Any, Any]:
    """The elements of a rank along `dim`, and where they are: the `given` one, or that of a "median" or "nanmedian"."""
    done = arrays.ranked(array, dim, keepdim, kind, rank)
    if done is not None:
        return done
    lines = dim_moved(_sortable(array), dim, -1)
    size = lines.shape[-1]
    missing = np.isnan(lines).sum(-1) if lines.dtype.kind == "f" else np.zeros(lines.shape[:-1], np.int64, like=array)
    if kind == "median":  # of elements among which there is a NaN, that
        ranks = np.where(missing > 0, size - missing, (size - 1) // 2)
    else:
        ranks = np.maximum(size - missing - 1, 0) // 2 if kind == "nanmedian" else np.full_like(missing, rank)
    positions = dim_moved(_positions_of_ranks(lines, ranks[..., None]), -1, dim)
    return _chosen(array, positions, dim, keepdim)


def _positions_of_ranks(lines: Any, ranks: Any) -> Any:
    """Where the elements of the given ranks are in lines along the last dimension; equal ones count in their order."""
    distinct = np.unique(ranks)
    values = np.take_along_axis(np.partition(lines, distinct, -1), ranks, -1)
    are_equal = lines == values
    are_before = lines < values
    if lines.dtype.kind == "f":
        is_nan = np.isnan(lines)
        are_equal |= is_nan & np.isnan(values)
        are_before |= ~is_nan & np.isnan(values)
    among_equal = ranks - are_before.sum(-1, keepdims=True)
    if not read(among_equal.any()):
        return are_equal.argmax(-1)[..., None]
    return (are_equal.cumsum(-1) > among_equal).argmax(-1)[..., None]


@several(
    "MedianBackward1", axes=Along("dim"), results=("values", "indices"), self=_chosen_gradient, shape=_chosen_shapes
)
def _median_dim(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64, like=self)
    return _selected(self, dim, keepdim, "median")


@several(
    "NanmedianBackward1", axes=Along("dim"), results=("values", "indices"), self=_chosen_gradient, shape=_chosen_shapes
)
def _nanmedian_dim(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64, like=self)
    return _selected(self, dim, keepdim, "nanmedian")


def _whole_median_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    attained = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return where(attained, grad / attained.sum(), 0)  # nothing of a NaN or an infinity for the others


def _whole_median(array: Any, kind: str) -> Any:
    flat = array.reshape(-1)
    if flat.size == 0:
        return np.array(np.nan if array.dtype.kind in "fV" else np.iinfo(array.dtype).min, array.dtype, like=array)
    return _selected(flat, 0, False, kind)[0]


@primitive(
    "MedianBackward0",
    axes=Whole("median_dim", flat=True),
    self=_whole_median_gradient,
    shape=lambda self: np.empty_like(self, shape=()),
)
def _median_all(self: Array) -> Array:
    return _whole_median(self, "median")


@primitive(
    "NanmedianBackward0",
    axes=Whole("nanmedian_dim", flat=True),
    self=_whole_median_gradient,
    shape=lambda self: np.empty_like(self, shape=()),
)
def _nanmedian_all(self: Array) -> Array:
    return _whole_median(self, "nanmedian")


def _median(
    name: str, whole: Any, along: Any, kind: Any, input: Tensor, dim: int | None, keepdim: bool, out: Any
) -> Any:
    if dim is None:
        refuse_out(name, out)
    if input._kind.dtype.category in (BOOL, COMPLEX):
        raise no_kernel("median_cpu" if dim is None else "median_out", input)
    if dim is None:
        return whole(input)
    dim = wrap_dim(dim, input._array.ndim)
    check_nonempty(name, input, dim)
    return store_exactly(named(kind, along(input, dim, keepdim)), out)


@public()
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median; of an even number of elements the lower of the two in the middle."""
    return _median("median", _median_all, _median_dim, MEDIAN, input, dim, keepdim, out)


@public()
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of the elements that are not NaN."""
    return _median("nanmedian", _nanmedian_all, _nanmedian_dim, NANMEDIAN, input, dim, keepdim, out)


@several("ModeBackward0", axes=Along("dim"), results=("values", "indices"), self=_chosen_gradient, shape=_chosen_shapes)
def _mode(self: Array, dim: int, keepdim: bool) -> Any:
    if self.ndim == 0:
        return self.copy(), np.zeros((), np.int64, like=self)
    lines = dim_moved(_sortable(self), dim, -1)
    ordered = np.sort(lines, -1)
    places = np.arange(lines.shape[-1], like=lines)
    begins = np.empty(lines.shape, bool, like=lines)
    begins[..., 0] = True
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=begins[..., 1:])
    # How many elements up to each place equal it: the first of the largest counts belongs to the smallest value.
    counts = places - np.maximum.accumulate(np.where(begins, places, 0), -1)
    values = taken(ordered, counts.argmax(-1)[..., None], lines.ndim - 1)
    last = np.where(lines == values, places, 0).max(-1, keepdims=True)
    return _chosen(self, dim_moved(last, -1, dim), dim, keepdim)


@public()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent value along `dim` (the smallest of several), and an index of it."""
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel("mode_cpu", input)
    dim = wrap_dim(dim, input._array.ndim)
    check_nonempty("mode", input, dim)
    return store_exactly(named(MODE, _mode(input, dim, keepdim)), out)


# ----- distinct values --------------------------------------------------------------------------------------------


def _distinct_by_counting(flat: Any, lowest: int, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """`_distinct` of integers that lie close together: there is a place for each that might occur."""
    wide: Any = np.uint64 if flat.dtype == np.uint64 else np.int64
    places = (flat.astype(wide) - wide(lowest)).astype(np.int64)
    counts = np.bincount(places)
    found = counts.nonzero()[0]
    numbers = np.empty(counts.size, np.int64)
    numbers[found] = np.arange(found.size)
    values = (found.astype(wide) + wide(lowest)).astype(flat.dtype)
    return values, numbers[places].reshape(shape), counts[found].astype(np.int64)


def _distinct(array: Any) -> tuple[Any, Any, Any]:
    """The distinct elements in order, of which each one is the how manieth, and how often each of them occurs."""
    flat = array.reshape(-1)
    if flat.dtype.kind in "iu" and flat.dtype.itemsize > 1:
        lowest, highest = int(flat.min()), int(flat.max())
        if highest - lowest < flat.size:
            return _distinct_by_counting(flat, lowest, array.shape)
    order = _sortable(flat).argsort(kind="stable")
    ordered = flat[order]
    begins = np.empty(flat.size, bool)
    begins[0] = True
    np.not_equal(ordered[1:], ordered[:-1], begins[1:])
    starts = begins.nonzero()[0]
    inverse = np.empty(flat.size, np.int64)
    inverse[order] = begins.cumsum() - 1
    counts = np.empty(starts.size, np.int64)
    np.subtract(starts[1:], starts[:-1], counts[:-1])
    counts[-1] = flat.size - starts[-1]
    return ordered[starts], inverse.reshape(array.shape), counts


def _distinct_values(array: Any) -> Any:
    """The distinct elements in order, and nothing else of them."""
    flat = array.reshape(-1)
    if flat.dtype.kind in "iu" and flat.dtype.itemsize > 1 and flat.size >= LARGE:
        lowest, highest = int(np.minimum.reduce(flat)), int(np.maximum.reduce(flat))
        if highest - lowest < flat.size:
            wide: Any = np.uint64 if flat.dtype == np.uint64 else np.int64
            found = np.bincount((flat.astype(wide) - wide(lowest)).astype(np.int64)).nonzero()[0]
            return (found.astype(wide) + wide(lowest)).astype(flat.dtype)
    ordered = np.array(_sortable(flat))
    ordered.sort()
    begins = np.empty(flat.size, bool)
    begins[0] = True
    np.not_equal(ordered[1:], ordered[:-1], begins[1:])
    values = ordered[begins]
    if flat.dtype.kind in "fV" and (zeros := values == 0).any():
        values[zeros] = flat[(flat == 0).argmax()]  # of both zeros the first that there is
    if flat.dtype == np.float16 and ordered[-1] != ordered[-1]:
        values[values != values] = flat[(flat != flat).argmax()]  # NumPy's sort by AVX-512 makes NaN of its own
    return values.astype(flat.dtype, copy=False)


def _plain_unique(input: Tensor) -> Tensor | None:
    """The short way to the distinct elements, where nobody looks on; None where it does not apply."""
    modes, kind, array = THREAD.modes, input._kind, input._array
    if kind not in modes.direct or not kind.is_cpu or kind.indirect or not array.size:
        return None
    if modes.grad and input.requires_grad:
        return None
    return Tensor._from_parts((_distinct_values(array), kind, None if modes.inference else [0, None]))


def _no_derivative(whole: str, along: str) -> Any:
    def refuse(grad: Tensor, dim: int | None) -> Tensor:
        raise NotImplementedError(f"the derivative for '{whole if dim is None else along}' is not implemented.")

    return refuse


@several("Unique2Backward0", self=_no_derivative("_unique2", "unique_dim"), shape=shape_in_elements("_unique2"))
def _unique(self: Array, dim: int | None) -> Any:
    if dim is None and type(self) is np.ndarray and self.size:
        return _distinct(self)
    if dim is None:
        values, inverse, counts = np.unique(_sortable(self), return_inverse=True, return_counts=True, equal_nan=False)
        shape = self.shape
    else:
        values, inverse, counts = np.unique(
            dim_moved(_sortable(self), dim, 0), return_inverse=True, return_counts=True, axis=0, equal_nan=False
        )
        values = dim_moved(contiguous_array(values), 0, dim)
        shape = (self.shape[dim],)
    return values.astype(self.dtype, copy=False), inverse.reshape(shape).astype(np.int64), counts.astype(np.int64)


@several(
    "UniqueConsecutiveBackward0",
    self=_no_derivative("unique_consecutive", "unique_consecutive"),
    shape=shape_in_elements("unique_consecutive"),
)
def _unique_consecutive(self: Array, dim: int | None) -> Any:
    lines = self.reshape(-1) if dim is None else dim_moved(self, dim, 0)
    if len(lines) == 0:
        return (
            np.array(self, like=self),
            np.zeros(self.shape if dim is None else (0,), np.int64, like=self),
            np.zeros(0, np.int64, like=self),
        )
    changes = np.not_equal(lines[1:], lines[:-1]).any(axis=tuple(range(1, lines.ndim)))
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    inverse = np.cumsum(np.concatenate([[0], changes])).astype(np.int64)
    counts = np.diff(np.append(starts, len(lines))).astype(np.int64)
    if dim is None:
        return lines[starts], inverse.reshape(self.shape), counts
    return dim_moved(contiguous_array(lines[starts]), 0, dim), inverse, counts


def _with_extras(results: tuple[Tensor, ...], inverse: bool, counts: bool) -> Any:
    wanted = [results[0], *([results[1]] if inverse else []), *([results[2]] if counts else [])]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def _distinct_dim(input: Tensor, dim: int | None) -> int | None:
    if input._kind.dtype.category == COMPLEX:
        raise no_kernel("unique", input)
    if dim is None:
        return None
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    if input._array.size == 0 and shape[dim] != 0:
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: {shape}"
        )
    return dim if shape else None


@public()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or, with `dim`, the distinct slices), in order."""
    wrapped = _distinct_dim(input, dim)
    if wrapped is None and not (return_inverse or return_counts) and type(input) in PLAIN_TYPES:
        values = _plain_unique(input)
        if values is not None:
            return values
    return _with_extras(_unique(input, wrapped), return_inverse, return_counts)


@public()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without those that equal the one before."""
    wrapped = _distinct_dim(input, dim)
    return _with_extras(_unique_consecutive(input, wrapped), return_inverse, return_counts)


# ----- searching -------------------------------------------------------------------------------------


@primitive(None)
def _searchsorted(sorted_sequence: Array, values: Array, right: bool, dtype: Any) -> Array:
    side: Any = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return as_array(sorted_sequence.searchsorted(values, side)).astype(dtype.numpy)
    result = np.empty(values.shape, dtype.numpy, like=sorted_sequence)
    for place in np.ndindex(values.shape[:-1]):
        result[place] = np.searchsorted(sorted_sequence[place], values[place], side)
    return result


@public(method=False, also={"self": "input"})
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Any = None,
) -> Tensor:
    """Where to insert each value so that the last dimension of `sorted_sequence` stays sorted."""
    if not isinstance(input, Tensor) and not is_number(input):
        raise TypeError(f"searchsorted(): argument 'input' must be Tensor or Number, not {type(input).__name__}")
    if isinstance(input, Tensor):
        values = input
    else:  # converted as tensors are: 259 is 3 in uint8
        values = tensor(input, device=sorted_sequence.device).to(result_type_of(sorted_sequence, input))
    _check_search(sorted_sequence, values, right, side)
    if sorter is not None:
        _check_sorter(sorted_sequence, sorter)
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    result = _searchsorted(sorted_sequence, values, right or side == "right", int32 if out_int32 else int64)
    return store_exactly(result, out)


def _check_search(boundaries: Tensor, values: Tensor, right: bool, side: str | None) -> None:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if boundaries.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if boundaries.ndim > 1 and boundaries.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(boundaries.shape)} and "
            f"input value tensor {list(values.shape)}"
        )
    if boundaries._kind.dtype.category in (BOOL, COMPLEX):
        raise no_kernel("searchsorted_out_cpu", boundaries)


def _check_sorter(boundaries: Tensor, sorter: Tensor) -> None:
    if sorter.shape != boundaries.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(boundaries.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype is not int64:
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
    if (
        sorter.numel()
        and not sorter._kind.dataless
        and (int(sorter.min()) < 0 or int(sorter.max()) >= sorter.shape[-1])
    ):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


@public(method=False, also={"self": "input"})
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """The index of the bucket between `boundaries` into which each value falls."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
