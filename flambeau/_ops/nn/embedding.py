"""Rows of a table by number: embedding, bags of embeddings, one_hot."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.lazy_signs import every_element
from ..._core.backend import all_within, read, to_host
from ..._core.dtype import FLOAT, LEGACY_NAMES, float64, int32, int64
from ..._core.modes import recording
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor
from ..._dispatch.axes import Last
from ..._dispatch.changes.inplace import check_writable
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.host_read import check
from ..._dispatch.public.protocol import as_kind
from ..._dispatch.public.registry import public
from ..._dispatch.writer import writer
from ..reduce.moments import widened
from ..reduce.norm import _EPSILON, _norm_of

SUM, MEAN, MAX = range(3)
_MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


def _check_indices(name: str, indices: Tensor, number: int = 1) -> None:
    if indices._kind.dtype not in (int64, int32):
        raise RuntimeError(
            f"Expected tensor for argument #{number} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got torch.{LEGACY_NAMES[indices.dtype]}Tensor instead (while checking arguments for {name})"
        )


def _sparse_gradient(rows: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """The gradients of the looked-up rows as a sparse tensor of the shape of the weight, in the order of `indices`."""
    from ..sparse.tensors import make_coo

    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients. Use sparse=False with it"
        )
    width = rows.shape[-1]
    rows, flat = rows.reshape(-1, width), indices.reshape(-1).to(int64)
    if padding_idx >= 0:
        kept = (flat != padding_idx).nonzero().squeeze(1)
        rows, flat = rows.index_select(0, kept), flat.index_select(0, kept)
    return make_coo(flat.unsqueeze(0), rows.contiguous(), (num_weights, width), False)


# ----- rows of a table ---------------------------------------------------------------------------------------------


def _frequencies(indices: Array, rows: int) -> Array:
    """For each index how often it occurs."""
    return np.bincount(indices.reshape(-1), minlength=rows)[indices]


def _row_factors(indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Array | None:
    """What the gradient of each looked-up row is multiplied by; None is 1 for all."""
    if padding_idx < 0 and not scale_grad_by_freq:
        return None
    factors = (indices != padding_idx).astype(np.float64)
    if scale_grad_by_freq:
        factors /= _frequencies(indices, rows)
    return factors[..., None]


def _scaled_rows(rows: Array, factors: Array | None) -> Array:
    return rows if factors is None else rows * factors.astype(rows.dtype)


def _gathered_gradient(
    grad: Tensor, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    return _gather_scaled(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def _scattered_gradient(
    grad: Tensor, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    return _embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def _dense_backward_shape(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    return np.empty_like(grad_output, shape=(num_weights, grad_output.shape[-1]))


@primitive("EmbeddingDenseBackwardBackward0", grad_output=_gathered_gradient, shape=_dense_backward_shape)
def _embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    factors = _row_factors(indices, num_weights, padding_idx, scale_grad_by_freq)
    width = grad_output.shape[-1]
    added = _scaled_rows(widened(grad_output), factors).reshape(-1, width)
    if REPRODUCIBILITY.samples is not None and type(added) is np.ndarray and indices.ndim:
        return REPRODUCIBILITY.samples.rows_sum(indices, added, num_weights).astype(grad_output.dtype, copy=False)
    flat = indices.reshape(-1)
    total = np.zeros((num_weights, width), added.dtype, like=grad_output)
    if flat.size:
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        total[ordered[starts]] = np.add.reduceat(added[order], starts, axis=0)
    return total.astype(grad_output.dtype, copy=False)


@primitive("EmbeddingBackward0", weight=_scattered_gradient)
def _gather_scaled(
    weight: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """The transpose of `_embedding_dense_backward`."""
    rows = widened(weight[indices])
    return _scaled_rows(rows, _row_factors(indices, num_weights, padding_idx, scale_grad_by_freq)).astype(weight.dtype)


def _embedding_gradient(
    grad: Tensor, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool, weight_sym_argsize_0: int
) -> Any:
    if sparse:
        return _sparse_gradient(grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)
    return _embedding_dense_backward(grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)


@primitive("EmbeddingBackward0", weight=_embedding_gradient, fuses=False)
def _embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Array:
    return weight.take(indices, 0) if type(weight) is np.ndarray else np.take(weight, indices, 0)


_UNSIGNED = {np.dtype(each).char: np.dtype(f"u{np.dtype(each).itemsize}") for each in (np.int64, np.int32)}
_largest: Any = np.maximum.reduce


@check("check_rows")
def _check_rows(indices: Array, rows: int) -> None:
    if not indices.size:
        return
    if type(indices) is np.ndarray:
        unsigned = indices.view(_UNSIGNED[indices.dtype.char])  # where negative numbers are very large
        if _largest(unsigned, None) < rows:
            return
    if not all_within(indices, 0, rows, "embedding"):
        wrong = to_host(indices[(indices < 0) | (indices >= rows)]).flat[0]
        raise IndexError(f"index out of range in self: {wrong} is not among the {rows} rows of weight")


@public(method=False, name="embedding")
def torch_embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`nn.functional.embedding` with its first two parameters swapped."""
    if weight._array.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, but it has shape {list(weight._array.shape)}")
    _check_indices("embedding", indices)
    if not weight._array.shape[0] and indices._array.size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive: weight has no rows")
    _check_rows(indices, weight._array.shape[0])
    return _embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)


@public(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place, the rows at `indices` whose norm exceeds `max_norm`."""
    shape = input._array.shape
    if len(shape) != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got a tensor of shape {list(shape)} for argument #1 'self'"
        )
    _check_indices("embedding_renorm_", indices, 2)
    _check_rows(indices, shape[0])
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex, not {input.dtype}")
    check_writable(input)
    _renorm_rows(input, indices, max_norm, norm_type)
    return input


@writer("embedding_renorm_", writes=("self",))
def _renorm_rows(self: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    rows = np.unique(indices)
    chosen = self[rows]
    size = _norm_of(chosen, float(norm_type), (1,), True).astype(np.float64)
    factor = np.where(size > max_norm, max_norm / (size + _EPSILON), 1).astype(chosen.dtype)
    self[rows] = (widened(chosen) * widened(factor)).astype(chosen.dtype)


def _renormalise(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    for word, value in (("max_norm", max_norm), ("norm_type", norm_type)):
        as_kind("embedding_renorm_", word, value)
    with recording(False):
        embedding_renorm_(weight, indices, max_norm, norm_type)


@public("nn.functional.embedding", function=False, method=False)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` whose numbers are in `input`.

    The row `padding_idx` gets no gradient; rows longer than `max_norm` are first shortened, in place.
    """
    padding = -1
    if padding_idx == 0:
        padding = 0
    elif padding_idx is not None:
        if not weight._array.ndim:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions: weight has no rows")
        rows = weight._array.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings: {padding_idx}, with {rows} rows")
        padding = padding_idx % rows
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    return torch_embedding(weight, input, padding, scale_grad_by_freq, sparse)


# ----- bags of rows ------------------------------------------------------------------------------------------------


def _bag_numbers(offsets: Array, count: int, include_last_offset: bool) -> tuple[Array, int]:
    """For each index the bag that it is in, and how many bags there are."""
    starts = offsets[:-1] if include_last_offset else offsets
    if type(starts) is np.ndarray and starts.size:
        sizes = np.diff(starts, append=count)
        if sizes.min() >= 0:
            return np.repeat(np.arange(len(starts)), sizes.astype(np.intp, copy=False)), len(starts)
    return np.searchsorted(starts, np.arange(count, like=offsets), side="right") - 1, len(starts)


def _row_gradients(grad: Tensor, mode: int, bags: Any, sizes: Any, per_sample_weights: Any) -> Tensor:
    """The gradient of each row that went into a sum or a mean."""
    if mode == MEAN:
        grad = grad / sizes.clamp(min=1).to(grad.dtype).unsqueeze(-1)
    rows = grad.index_select(0, bags)
    return rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)


def _bag_gradient(
    grad: Tensor,
    indices: Any,
    mode: int,
    padding_idx: int,
    per_sample_weights: Any,
    result1: Any,
    result2: Any,
    result3: Any,
    scale_grad_by_freq: bool,
    sparse: bool,
    weight_sym_argsize_0: int,
) -> Any:
    if sparse:
        rows = _row_gradients(grad, mode, result1, result2, per_sample_weights)
        return _sparse_gradient(rows, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)
    if mode == MAX:
        kept = grad * (result2 > 0).to(grad.dtype).unsqueeze(-1)
        zeros = grad.new_zeros((weight_sym_argsize_0, grad.shape[1]))
        return zeros.scatter_add(0, result3.to(int64), kept)
    rows = _row_gradients(grad, mode, result1, result2, per_sample_weights)
    return _embedding_dense_backward(rows, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)


def _sample_weight_gradient(grad: Tensor, weight: Tensor, indices: Any, padding_idx: int, result1: Any) -> Tensor:
    along = (grad.index_select(0, result1) * torch_embedding(weight, indices)).sum(1)
    return along if padding_idx < 0 else along * (indices != padding_idx).to(along.dtype)


def _bag_shapes(
    weight: Array, indices: Array, offsets: Array, mode: int, per_sample_weights: Array | None,
    scale_grad_by_freq: bool, sparse: bool, include_last_offset: bool, padding_idx: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    count = len(offsets) - include_last_offset
    bags = np.empty_like(weight, shape=(count, weight.shape[1]))
    sizes = np.empty_like(indices, shape=(count,))
    origins = np.empty_like(indices, shape=bags.shape) if mode == MAX else sizes
    return bags, np.empty_like(indices, shape=(indices.size,)), sizes, origins


@several("EmbeddingBagBackward0", weight=_bag_gradient, per_sample_weights=_sample_weight_gradient, shape=_bag_shapes)
def _bags(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: int,
    per_sample_weights: Array | None,
    scale_grad_by_freq: bool,
    sparse: bool,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Array, Array, Array, Array]:
    """The bags, the bag of each index, the size of each bag, and in mode "max" which row each element came from."""
    bags, count = _bag_numbers(offsets, indices.size, include_last_offset)
    rows, bag_of_row, factors = indices, bags, per_sample_weights
    if padding_idx >= 0:
        kept = indices != padding_idx
        rows, bag_of_row, factors = (None if each is None else each[kept] for each in (rows, bags, factors))
    sizes = origins = np.bincount(bag_of_row, minlength=count)
    if mode == MAX:
        result, origins = _highest(weight, rows, bag_of_row, sizes)
    else:
        result = _summed(weight, rows, bag_of_row, factors, sizes)
    if mode == MEAN:
        result /= np.maximum(sizes, 1)[:, None].astype(result.dtype)
    bags, sizes, origins = (each.astype(indices.dtype, copy=False) for each in (bags, sizes, origins))
    return result.astype(weight.dtype, copy=False), bags, sizes, origins


def _summed(weight: Array, rows: Array, bags: Array, factors: Array | None, sizes: Array) -> Array:
    """The sum of the rows of each bag: the product with a sparse matrix, where there is one."""
    if type(weight) is np.ndarray:
        values = np.ones(len(rows), weight.dtype) if factors is None else factors
        done = arrays.sparse_product(bags.astype(rows.dtype, copy=False), rows, values, weight, len(sizes))
        if done is not None:
            return done
    values = widened(weight[rows])
    if factors is not None:
        values = values * widened(factors)[:, None]
    result = np.zeros((len(sizes), weight.shape[1]), values.dtype, like=weight)
    filled, starts = _starts(sizes)
    if filled.size:
        result[filled] = np.add.reduceat(values, starts, axis=0)
    return result


def _highest(weight: Array, rows: Array, bags: Array, sizes: Array) -> tuple[Array, Array]:
    """The maxima over the rows of each bag, and which row each came from."""
    if type(weight) is np.ndarray and sizes.size and 0 < sizes.min() == sizes.max():
        return _highest_of_equal(weight, rows.reshape(len(sizes), -1))
    values = widened(weight[rows])
    result = np.zeros((len(sizes), weight.shape[1]), values.dtype, like=weight)
    origins = np.zeros(result.shape, rows.dtype, like=weight)
    filled, starts = _starts(sizes)
    if filled.size:
        result[filled] = np.maximum.reduceat(values, starts, axis=0)
        origins[filled] = _first_origins(values, result[bags], rows, starts)
    return result, origins


def _highest_of_equal(weight: Array, rows: Array) -> tuple[Array, Array]:
    """The maxima over bags of one size, the rows of `rows`, and which row each came from."""
    result = widened(weight[rows[:, 0]])
    origins = np.repeat(rows[:, :1], result.shape[1], 1)
    for row in rows.T[1:]:
        values = widened(weight[row])
        higher = ~(values <= result) & (result == result)  # the first of the highest, where NaN is higher than all
        np.copyto(result, values, where=higher)
        np.copyto(origins, row[:, None], where=higher)
    return result, origins


def _starts(sizes: Array) -> tuple[Array, Array]:
    """The bags that are not empty, and where each begins."""
    filled = np.flatnonzero(sizes)
    return filled, (np.cumsum(sizes) - sizes)[filled]


def _first_origins(values: Array, highest: Array, rows: Array, starts: Array) -> Array:
    """For each bag and column the first row that has the maximum."""
    places = np.arange(len(rows), like=values)[:, None]
    at_maximum = (values == highest) | (np.isnan(values) & np.isnan(highest))
    first = np.minimum.reduceat(np.where(at_maximum, places, len(rows)), starts, axis=0)
    return rows[first]


def _check_bags(
    weight: Tensor, indices: Tensor, offsets: Tensor, per_sample_weights: Tensor | None, include_last_offset: bool
) -> None:
    _check_indices("embedding_bag", indices)
    _check_indices("embedding_bag", offsets)
    if weight._kind.dtype.category != FLOAT:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got torch.{LEGACY_NAMES[weight.dtype]}Tensor instead (while checking arguments for "
            "embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights._kind.dtype is not weight._kind.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {weight.type()} does not equal {per_sample_weights.type()} (while "
            "checking arguments for embedding_bag)"
        )
    if include_last_offset and offsets._array.size < 1:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    _check_contents_of_bags(indices, offsets, weight._array.shape[0])


@check("check_contents_of_bags")
def _check_contents_of_bags(indices: Array, offsets: Array, rows: int) -> None:
    array, starts = indices.reshape(-1), to_host(offsets)
    if starts.size:
        count = indices.size
        if (first := starts[..., 0]).any():
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {first.max()}"
            )
        if (last := starts[..., -1].max()) > count:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {last}"
            )
        if ((starts < 0) | (starts > count)).any():
            raise IndexError(f"index out of range in self: the offsets of bags are from 0 to {count}")
        if (np.diff(starts) < 0).any():
            raise RuntimeError("Expected i < index_size to be true, but got false: the offsets of bags must not fall")
    wrong = np.flatnonzero((array < 0) | (array >= rows))
    if wrong.size:
        raise RuntimeError(
            f"Index {wrong[0]} of input takes value {array[wrong[0]]} which is not in the valid range [0, {rows})"
        )


@public(method=False, name="embedding_bag")
def torch_embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags of rows, with the bag of each index, the sizes of the bags, and in mode 2 (max) the origin of elements."""
    _check_bags(weight, indices, offsets, per_sample_weights, include_last_offset)
    padding = -1
    if padding_idx is not None:
        rows = weight._array.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got "
                f"{padding_idx}"
            )
        padding = padding_idx % rows
    if indices._kind.dtype is not offsets._kind.dtype:
        indices, offsets = indices.to(int64), offsets.to(int64)
    bags, owners, sizes, origins = _bags(
        weight, indices, offsets, mode, per_sample_weights, scale_grad_by_freq, sparse, include_last_offset, padding
    )
    if mode == SUM:  # PyTorch does not count there, and numbers bags only where rows may be left out
        sizes = origins = sizes.new_zeros(offsets.shape)
        owners = owners if padding >= 0 or weight._kind.dtype is float64 else owners[:0]
    return bags, owners, sizes, origins


def _check_bag_arguments(
    input: Any, weight: Any, offsets: Any, mode: str, scale_grad_by_freq: bool, sparse: bool, per_sample_weights: Any
) -> None:
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.size()}) is not None, then it must have the "
            f"same shape as the input ({input.size()})"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as each of its rows is a bag. However, found offsets of type "
            f"{type(offsets)}"
        )
    if input.dim() == 1:
        if not isinstance(offsets, Tensor):
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError(f"offsets has to be a 1D Tensor, not one of {offsets.dim()} dimensions")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max, not {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )


@public("nn.functional.embedding_bag", function=False, method=False)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of the rows of `weight` in each bag.

    The bags are the rows of `input`, or the parts of a 1D `input` that begin at `offsets`.
    """
    if weight.dtype is int64 and input.dtype.is_floating_point:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
            stacklevel=3,
        )
        input, weight = weight, input
    _check_bag_arguments(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    indices = input
    if indices.dim() == 2:
        bags, width = indices.shape
        if bags and not width:
            raise RuntimeError(f"step must be nonzero: the bags of an input of shape {list(indices.shape)} are empty")
        if indices._kind.dataless:  # by an op, which who writes ops down sees
            offsets = indices.new_full((bags,), width).cumsum(0, dtype=indices._kind.dtype) - width
        else:
            offsets = indices.new_tensor(np.arange(0, bags * width, width or 1, dtype=indices._array.dtype))
        indices = indices.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    assert offsets is not None
    if max_norm is not None:
        _renormalise(weight, indices, max_norm, norm_type)
    number = _MODES[mode]
    return torch_embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset,
        padding_idx,
    )[0]  # fmt: skip


# ----- one of many -------------------------------------------------------------------------------------------------


@primitive(None, axes=Last(0))
def _one_hot(self: Array, num_classes: int) -> Array:
    result = np.zeros((*self.shape, num_classes), np.int64, like=self)
    if self.size:
        firsts = np.arange(0, result.size, num_classes, like=self)
        result.reshape(-1)[firsts + self.reshape(-1)] = 1
    return result


@check("check_one_hot")
def _check_one_hot(self: Array, num_classes: int) -> None:
    if not self.size or arrays.within(self, num_classes):
        return
    if read(self.min() < 0):
        raise RuntimeError("Class values must be non-negative.")
    if read(self.max() >= num_classes):
        raise RuntimeError(f"Class values must be smaller than num_classes: {self.max()} is not below {num_classes}.")


@public("nn.functional.one_hot", function=False, method=False)
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows with a single 1, at the place that the class index says."""
    if input.dtype is not int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, not {input.dtype}.")
    if input._kind.dataless:
        if num_classes == -1:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors: one_hot needs num_classes there")
    elif num_classes > 0:
        _check_one_hot(input, num_classes)
    elif not (array := every_element(input)).size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif read(array.min() < 0):
        raise RuntimeError("Class values must be non-negative.")
    elif num_classes != -1:
        raise RuntimeError("num_classes should be positive")
    else:
        if input._is_wrapper:
            input._refuse_reading()
        num_classes = int(read(array.max())) + 1
    return _one_hot(input, num_classes)
