"""Whole slices along a dimension, by position: index_add, index_copy, index_fill, index_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.arrays import add_slices, within
from ..._core.backend import all_within, as_array, is_of_host
from ..._core.dtype import COMPLEX, LEGACY_NAMES, int32, int64
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.arguments.promotion import Number
from ..._dispatch.arguments.scalar import check_value, fitting, scaling
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from ..shape.view import wrap_dim
from .copy_then_write import change, publish_change, writing
from .indexing import advanced_put
from .reductions_at import gradient_of_source, gradient_of_target, reduce_at


def _rows(dim: int, index: Any) -> tuple[Any, ...]:
    """The NumPy index of the slices `index` along `dim`."""
    return (*[slice(None)] * dim, index)


def _one_dim(array: Any) -> Any:
    return array if array.ndim else array.reshape(1)


def _in_range(index: Any, size: int, dim: int, error: type[Exception], prefix: str = "", lowest: int = 0) -> Any:
    positions = index.reshape(-1)
    if not within(positions, size) and not all_within(positions, lowest, size, "an op along an index"):
        wrong = positions[(positions < lowest) | (positions >= size)]
        raise error(f"{prefix}index {int(wrong[0])} is out of bounds for dimension {dim} with size {size}")
    return positions


def _has_slices(target: Any, dim: int, positions: Any) -> bool:
    """Whether there is something at the positions. Wrong ones are refused where slices have elements, and there are
    none of them: what has no elements anyhow takes any position, as in PyTorch.
    """
    if target.size and positions.size:
        return True
    if positions.size and 0 not in (*target.shape[:dim], *target.shape[dim + 1 :]):
        raise RuntimeError(f"there is nothing along dimension {dim}, which has size 0: no position is within bounds")
    return False


# ----- index_add ----------------------------------------------------------------------------------------------------


def _index_add_source(grad: Tensor, dim: int, index: Tensor, source_sym_sizes: tuple[int, ...], alpha: Any) -> Tensor:
    picked = grad.index_select(dim, index).reshape(source_sym_sizes)
    return picked if alpha == 1 else picked * alpha


@writing("IndexAddBackward0", self=lambda grad: grad, source=_index_add_source)
def _index_add(self: Array, dim: int, index: Array, source: Array, alpha: Any) -> None:
    target, values, positions = _one_dim(self), _one_dim(source), index.reshape(-1)
    if not target.size and target.ndim > 1:  # one dimension is checked all the same, as in PyTorch
        return
    if alpha != 1:
        values = values * as_array(alpha).astype(values.dtype)
    if target.dtype.kind != "b" and is_of_host(type(target)) and add_slices(target, dim, positions, values):
        return
    if target.ndim == 1:
        _in_range(index, target.shape[dim], dim, IndexError, "index out of range in self: ")
    else:
        _in_range(index, target.shape[dim], dim, RuntimeError)
    if positions.size == 0 or values.size == 0:
        return
    if target.dtype.kind == "b":
        np.logical_or.at(target, _rows(dim, positions), values)
        return
    advanced = tuple([positions if i == dim else None for i in range(target.ndim)])
    advanced_put(target, advanced, values, accumulate=True)


def _refuse_single(source: Tensor) -> None:
    """Refuse a tensor without dimensions where as many elements as indices are wanted, and there is not one index."""
    if not source._array.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions: source has one element for one index")


def _index_add_arguments(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> tuple[Any, ...]:
    dim = wrap_dim(dim, input._array.ndim)
    for name, each in (("index", index), ("source", source)):
        if not isinstance(each, Tensor):
            raise TypeError(f"index_add_(): argument '{name}' must be Tensor, not {type(each).__name__}")
    if index._array.ndim > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index._array.ndim} with type: "
            f"{LEGACY_NAMES[index.dtype]} and size: {list(index._array.shape)}"
        )
    if index._kind.dtype not in (int64, int32):
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {LEGACY_NAMES[index.dtype]}")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"index_add_(): self ({LEGACY_NAMES[input.dtype]}) and source ({LEGACY_NAMES[source.dtype]}) must have "
            "the same scalar type"
        )
    given = source._array.shape
    count = given[dim] if given and dim < len(given) else 1
    if count != index._array.size:
        _refuse_single(source)
        raise RuntimeError(
            f"index_add_(): Number of indices ({index._array.size}) should be equal to source.size(dim): ({count}), "
            f"for dim: {dim}"
        )
    _check_slices(input, dim, source)
    return dim, index, source, _factor(alpha, input)


def _check_slices(input: Tensor, dim: int, source: Tensor) -> None:
    """Refuse slices of another shape than those of `input`."""
    shape, given = input._array.shape, source._array.shape
    if len(shape) != len(given) or shape[:dim] + shape[dim + 1 :] != given[:dim] + given[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(given)}"
        )


def _factor(alpha: Any, input: Tensor) -> Any:
    category = input._kind.dtype.category
    if isinstance(alpha, complex) and category != COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return scaling(alpha, input._kind.dtype)


@public(out=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """A copy of `input` with `alpha * source` added to the slices `index` along `dim`."""
    return _index_add(input, *_index_add_arguments(input, dim, index, source, alpha=alpha))


publish_change(_index_add, "index_add", _index_add_arguments)


# ----- index_copy ---------------------------------------------------------------------------------------------------


@writing(
    "IndexCopyBackward0",
    self=lambda grad, dim, index: grad.index_fill(dim, index, 0),
    source=lambda grad, dim, index, source_sym_sizes: grad.index_select(dim, index).reshape(source_sym_sizes),
)
def _index_copy(self: Array, dim: int, index: Array, source: Array) -> None:
    target = _one_dim(self)
    if _has_slices(target, dim, index):
        positions = _in_range(index, target.shape[dim], dim, IndexError, "index_copy_(): ")
        values = _one_dim(source)
        target[_rows(dim, positions)] = values if values.ndim == target.ndim else values.reshape(1)


def _index_copy_arguments(input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Any, ...]:
    shape, given = input._array.shape, source._array.shape
    dim = wrap_dim(dim, len(shape))
    if index._array.ndim >= 2:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index._array.ndim})")
    count = index._array.size
    if not given and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if len(given) != len(shape) and given and shape:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(given)}), destination dimensionality ({len(shape)})"
        )
    if index._kind.dtype is not int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {LEGACY_NAMES[index.dtype]}")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{LEGACY_NAMES[input.dtype]} and (source) {LEGACY_NAMES[source.dtype]}"
        )
    if shape[:dim] + shape[dim + 1 :] != given[:dim] + given[dim + 1 :]:
        sizes, others = (" ".join(map(str, each[:dim] + each[dim + 1 :])) for each in (shape, given))
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{sizes} at dimension {dim} and source slice shape: {others} at dimension 0."
        )
    if given and count != given[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({given[dim]})"
        )
    return dim, index, source


@public(out=True, autocast=on(cpu=WIDEST))
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` with `source` in the slices `index` along `dim`."""
    return _index_copy(input, *_index_copy_arguments(input, dim, index, source))


publish_change(_index_copy, "index_copy", _index_copy_arguments)


# ----- index_fill ---------------------------------------------------------------------------------------------------


def _fill_slices(target: Any, dim: int, index: Any, value: Any) -> None:
    target = _one_dim(target)
    size = target.shape[dim]
    if _has_slices(target, dim, index):
        target[_rows(dim, _in_range(index, size, dim, IndexError, lowest=-size))] = value


@writing("IndexFillBackward0", keeps_strides=True, self=lambda grad, dim, index: grad.index_fill(dim, index, 0))
def _index_fill_number(self: Array, dim: int, index: Array, value: Any) -> None:
    _fill_slices(self, dim, index, value)


@writing(
    "IndexFillBackward1",
    keeps_strides=True,
    self=lambda grad, dim, index: grad.index_fill(dim, index, 0),
    value=lambda grad, dim, index: grad.index_select(dim, _distinct(index, grad, dim)).sum(),
)
def _index_fill_tensor(self: Array, dim: int, index: Array, value: Array) -> None:
    _fill_slices(self, dim, index, value)


def _distinct(index: Tensor, tensor: Tensor, dim: int) -> Tensor:
    """Each position once, counted from the front: what was filled twice was filled all the same."""
    return _distinct_positions(index, tensor._array.shape[dim] if tensor._array.ndim else 1)


@primitive(None)
def _distinct_positions(self: Array, size: int) -> Array:
    return np.unique(self % max(size, 1))


def _index_fill_call(input: Tensor, dim: int, index: Tensor, value: Any) -> tuple[Any, ...]:
    dim = wrap_dim(dim, input._array.ndim)
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        if value._kind.dtype.is_complex and not input._kind.dtype.is_complex:
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        check_value(value, input._kind.dtype)
    elif isinstance(value, complex) and not input._kind.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if index._kind.dtype is not int64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, but got {index.dtype}.")
    if index._array.ndim > 1:
        raise RuntimeError(f"Index has to be a vector/scalar, but its shape is {list(index._array.shape)}")
    if isinstance(value, Tensor):
        return _index_fill_tensor, dim, index, value
    return _index_fill_number, dim, index, fitting(value, input._kind.dtype)


@public()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of `input` with the slices `index` along `dim` set to `value`."""
    op, *rest = _index_fill_call(input, dim, index, value)
    filled: Tensor = op(input, *rest)
    return filled


@public()
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """In-place form of `index_fill`."""
    op, *rest = _index_fill_call(input, dim, index, value)
    return change(op, "index_fill", input, *rest)


# ----- index_reduce -------------------------------------------------------------------------------------------------


def _ways(dim: int, index: Tensor, reduce: str, include_self: bool) -> dict[str, Any]:
    return {
        "pick": lambda tensor: tensor.index_select(dim, index),
        "add": lambda tensor, values: tensor.index_add(dim, index, values),
        "again": lambda start, values: start.index_reduce(dim, index, values, reduce, include_self=include_self),
        "cleared": lambda tensor: tensor.index_fill(dim, index, 0),
    }


def _index_reduce_self(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> Any:
    return gradient_of_target(
        grad, self, source, result, reduce, include_self, **_ways(dim, index, reduce, include_self)
    )


def _index_reduce_source(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> Any:
    return gradient_of_source(
        grad, self, source, result, reduce, include_self, **_ways(dim, index, reduce, include_self)
    )


@writing("IndexReduceBackward0", self=_index_reduce_self, source=_index_reduce_source)
def _index_reduce(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> None:
    warn_user_once("index_reduce() is in beta and the API may change at any time.")
    target, values = _one_dim(self), _one_dim(source)
    positions = index.reshape(-1)
    size = target.shape[dim]
    if not all_within(positions, 0, size, "index_reduce"):
        raise IndexError(f"index out of range in self: positions along dimension {dim} are 0 to {size - 1}")
    if positions.size and values.size:
        # One index array for each dimension, so that counts and sums have the same key.
        key = [
            np.arange(n, like=self).reshape([-1 if i == each else 1 for i in range(values.ndim)])
            for each, n in enumerate(values.shape)
        ]
        key[dim] = positions.reshape([-1 if i == dim else 1 for i in range(values.ndim)])
        reduce_at(target, tuple(key), values, reduce, include_self)


def _index_reduce_arguments(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> tuple[Any, ...]:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError(
            f"index_reduce(): Index is supposed to be a vector, but its shape is {list(index._array.shape)}"
        )
    if index._kind.dtype not in (int64, int32):
        raise RuntimeError(f"index_reduce(): Expected dtype int32/int64 for index, but got {index.dtype}")
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            f"index_reduce(): self and source must have the same scalar type, but they are {input.dtype} and "
            f"{source.dtype}"
        )
    _check_slices(input, dim, source)
    given = source._array.shape
    count = given[dim] if given else 1
    if count != index._array.size:
        _refuse_single(source)
        raise RuntimeError(
            f"index_reduce(): Number of indices ({index._array.size}) should be equal to self.size(dim) ({count})"
        )
    return dim, index, source, reduce, bool(include_self)


@public(out=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of `input` with `source` reduced ("prod", "mean", "amax", "amin") into the slices `index` along `dim`."""
    arguments = _index_reduce_arguments(input, dim, index, source, reduce, include_self=include_self)
    return _index_reduce(input, *arguments)


publish_change(_index_reduce, "index_reduce", _index_reduce_arguments)
