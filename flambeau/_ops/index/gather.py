"""Elements by position: gather, take, put, take_along_dim, and index_select."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.backend import LARGE, all_within, read
from ..._core.dtype import LEGACY_NAMES, int32, int64
from ..._core.geometry.layout import contiguous_array
from ..._core.modes import THREAD
from ..._core.process.determinism import alert_not_deterministic
from ..._core.tensor import Tensor
from ..._dispatch.changes.exact_out import store_apart
from ..._dispatch.composite import composite
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.registry import public
from ..shape.named_shapes import joined
from ..shape.view import wrap_dim
from .copy_then_write import publish_change, writing


def positions_along(index: Any, dim: int) -> tuple[Any, ...]:
    """The NumPy index that takes `index` as positions along `dim` and each other dimension as it runs."""
    key: list[Any] = [
        np.arange(size, like=index).reshape([-1 if i == each else 1 for i in range(index.ndim)])
        for each, size in enumerate(index.shape)
    ]
    key[dim] = index
    return tuple(key)


def check_positions(index: Any, size: int, dim: int) -> None:
    """Refuse positions outside a dimension of `size`."""
    if not index.size or arrays.within(index, size):
        return
    if not all_within(index, 0, size, "gather or scatter"):
        wrong = index[(index < 0) | (index >= size)]
        raise RuntimeError(
            f"index {int(read(wrong.reshape(-1)[0]))} is out of bounds for dimension {dim} with size {size}: positions "
            f"are 0 to {size - 1}"
        )


def check_index_tensor(name: str, input: Tensor, index: Tensor) -> None:
    """Refuse an index of gather or scatter that has another dtype or number of dimensions than it must have."""
    if type(index) is Tensor and index._kind.dtype is int64 and index._array.ndim == input._array.ndim:
        return
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' (position 3) must be Tensor, not {type(index).__name__}")
    if index._array.size == 0:
        return
    dtype = index._kind.dtype
    if dtype is not int64 and dtype is not int32:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index, but got {index.dtype}: convert it with .long()"
        )
    if index._array.ndim != input._array.ndim and max(index._array.ndim, 1) != max(input._array.ndim, 1):
        what = "input" if name == "gather" else "self"
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {what} tensor: {index._array.ndim} and "
            f"{input._array.ndim}"
        )


def _added_on_arrays(grad: Array, sizes: tuple[int, ...], dim: int, index: Array) -> Array | None:
    """The kernel of `gather_backward`: None, where positions are out of range too, leaves it to its parts."""
    if not sizes:
        return None
    total = np.zeros(sizes, grad.dtype, like=grad)
    return total if arrays.scattered(total, dim, index, grad, "add") else None


@composite("gather_backward", kernel=_added_on_arrays)
def gather_backward(grad: Tensor, sizes: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    """Zeros of a shape, with `grad` added at the positions `index` along `dim`."""
    added: Tensor = grad.new_zeros(sizes).scatter_add_(dim, index, grad)
    return added


def _selected_on_arrays(grad: Array, indices: Array, sizes: tuple[int, ...], dim: int, keepdim: bool) -> Array | None:
    if not keepdim:
        place = (*[slice(None)] * dim, None)
        grad, indices = grad[place], indices[place]
    return _added_on_arrays(grad, sizes, dim, indices)


@composite("value_selecting_reduction_backward", kernel=_selected_on_arrays)
def value_selecting_reduction_backward(
    grad: Tensor, indices: Tensor, sizes: tuple[int, ...], dim: int, keepdim: bool
) -> Tensor:
    """The gradient of a result that was picked along `dim`: it goes to the picked elements."""
    if not sizes:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    added: Tensor = grad.new_zeros(sizes).scatter_add_(dim, indices, grad)
    return added


def _gather_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], dim: int, index: Tensor) -> Any:
    return gather_backward(grad, self_sym_sizes, dim, index)


@primitive("GatherBackward0", self=_gather_gradient)
def _gather(self: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return np.empty(index.shape, self.dtype, like=self)
    if self.ndim and index.ndim:
        done = arrays.gathered(self, dim, index)
        if done is not None:
            return done
    source = self if self.ndim else self.reshape(1)
    positions = index if index.ndim else index.reshape(1)
    check_positions(positions, source.shape[dim], dim)
    if source.ndim == 1:
        return source[positions].reshape(index.shape)
    return contiguous_array(source[positions_along(positions, dim)])


@public(out=store_apart)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements of `input` at the positions `index` along `dim`; the result has the shape of `index`."""
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    check_index_tensor("gather", input, index)
    given = index._array.shape
    if given != shape and index._array.size and shape:
        for each, size in enumerate(given):
            if each != dim and size > shape[each]:
                raise RuntimeError(
                    f"Size does not match at dimension {each} expected index {list(given)} to be no larger than self "
                    f"{list(shape)} apart from dimension {dim}"
                )
    return _gather(input, dim, index)


@public(out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements of `input` at the positions `indices` along `dim`, both broadcast; without `dim`, of the flat input."""
    if indices._kind.dtype is not int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {LEGACY_NAMES[indices.dtype]}"
        )
    source = input
    if dim is None:
        return gather(source.reshape(-1), 0, indices.reshape(-1))
    shape, given = input._array.shape, indices._array.shape
    if len(shape) != len(given):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(given)} dimensions for indices"
        )
    dim = wrap_dim(dim, len(shape))
    others = joined((*shape[:dim], 1, *shape[dim + 1 :]), (*given[:dim], 1, *given[dim + 1 :]))
    wanted = (*others[:dim], shape[dim], *others[dim + 1 :])
    places = (*others[:dim], given[dim], *others[dim + 1 :])
    # Mostly none is negative: then there is nothing to compute.
    known = indices._kind in THREAD.modes.direct and arrays.within(indices._array, shape[dim])
    positions = indices if known else indices.remainder(max(shape[dim], 1))
    return gather(
        source if wanted == shape else source.expand(wanted),
        dim,
        positions if places == given else positions.expand(places),
    )


# ----- index_select -------------------------------------------------------------------------------------------------


def _slices_added_on_arrays(grad: Array, sizes: tuple[int, ...], dim: int, index: Array) -> Array | None:
    if not sizes:
        return None
    total = np.zeros(sizes, grad.dtype, like=grad)
    return total if arrays.add_slices(total, dim, index.reshape(-1), grad) else None


@composite("index_select_backward", kernel=_slices_added_on_arrays)
def _index_select_backward(grad: Tensor, sizes: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    added: Tensor = grad.new_zeros(sizes).index_add_(dim, index, grad)
    return added


def _index_select_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], dim: int, index: Tensor) -> Any:
    return _index_select_backward(grad, self_sym_sizes, dim, index)


@primitive("IndexSelectBackward0", self=_index_select_gradient)
def _index_select(self: Array, dim: int, index: Array) -> Array:
    positions = index.reshape(-1)
    size = self.shape[dim] if self.ndim else 1
    if not arrays.within(positions, size) and not all_within(positions, 0, size, "index_select"):
        wrong = positions[(positions < 0) | (positions >= size)]
        if self.ndim > 1 and (dim or not self.size):
            raise RuntimeError(
                f"INDICES element is out of DATA bounds, id={int(wrong[0])} axis_dim={size}"
                if size
                else "index_select(): self indexing axis dim should be positive: there is nothing to select"
            )
        raise IndexError(
            f"index out of range in self: index {int(wrong[0])} for dimension {dim} with size {size} of shape "
            f"{list(self.shape)}"
        )
    if self.ndim == 0:
        return self.copy()
    if positions.size * self.size >= LARGE * size:
        done = arrays.selected(self, dim, positions)
        if done is not None:
            return done
    return contiguous_array(self.take(positions, axis=dim))


@public(out=store_apart)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of `input` at the positions in the vector `index` along `dim`."""
    if not isinstance(index, Tensor):
        raise TypeError(f"index_select(): argument 'index' (position 3) must be Tensor, not {type(index).__name__}")
    if index._array.ndim > 1:
        raise IndexError(
            f"index_select(): Index is supposed to be a vector, but its shape is {list(index._array.shape)}"
        )
    if index._kind.dtype not in (int64, int32):
        raise RuntimeError(f"index_select(): Expected dtype int32 or int64 for index, but got {index.dtype}")
    dim = wrap_dim(dim, input._array.ndim)
    if input._array.ndim == 0 and index._array.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._array.size} value(s)")
    return _index_select(input, dim, index)


# ----- the flat tensor ----------------------------------------------------------------------------------------------


def _flat_positions(index: Any, numel: int) -> Any:
    if not arrays.within(index, numel) and not all_within(index, -numel, numel, "take or put_"):
        wrong = index[(index < -numel) | (index >= numel)]
        raise IndexError(
            f"out of range: tried to access index {int(read(wrong.reshape(-1)[0]))} on a tensor of {numel} elements."
        )
    return index


def _check_long(name: str, index: Tensor) -> None:
    if index._kind.dtype is not int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {LEGACY_NAMES[index.dtype]}")


def _take_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], index: Tensor) -> Any:
    return grad.new_zeros(self_sym_sizes).put_(index, grad, accumulate=True)


@primitive("TakeBackward0", self=_take_gradient)
def _take(self: Array, index: Array) -> Array:
    if index.size and not self.size:
        raise IndexError("take(): tried to take from an empty tensor")
    positions = _flat_positions(index, self.size)
    return self.reshape(-1)[positions] if index.size else np.empty(index.shape, self.dtype, like=self)


@public(out=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat `input` at the positions `index`."""
    _check_long("take", index)
    return _take(input, index)


def _put_self(grad: Tensor, index: Tensor, accumulate: bool) -> Tensor:
    return grad if accumulate else grad.put(index, grad.new_zeros(index._array.shape))


@writing(
    "PutBackward0",
    keeps_strides=True,
    self=_put_self,
    source=lambda grad, index, source_sym_sizes: grad.take(index).reshape(source_sym_sizes),
)
def _put(self: Array, index: Array, source: Array, accumulate: bool) -> None:
    if index.size == 0:
        return
    positions = _flat_positions(index, self.size).reshape(-1)
    values = source.reshape(-1)
    if self.flags.c_contiguous:
        _store(self.reshape(-1), (positions,), values, accumulate)
    else:
        _store(self, np.unravel_index(positions % self.size, self.shape), values, accumulate)


def _store(target: Any, key: Any, values: Any, accumulate: bool) -> None:
    if accumulate:
        np.add.at(target, key, values)
    else:
        target[key] = values


def _put_arguments(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> tuple[Any, ...]:
    for name, each in (("index", index), ("source", source)):
        if not isinstance(each, Tensor):
            raise TypeError(f"put_(): argument '{name}' must be Tensor, not {type(each).__name__}")
    _check_long("put_", index)
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{LEGACY_NAMES[input.dtype]} and source.dtype = {LEGACY_NAMES[source.dtype]}"
        )
    if source._array.size != index._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    if not accumulate:
        alert_not_deterministic("put_")
    return index, source, bool(accumulate)


@public()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with the elements of `source` at positions of the flat tensor, or added to them."""
    return _put(input, *_put_arguments(input, index, source, accumulate))


publish_change(_put, "put", _put_arguments)
