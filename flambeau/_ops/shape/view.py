"""Views: other shapes and strides on the same memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends import arrays
from ..._core.arrays.views import row_strides_of
from ..._core.geometry.strided_windows import restrided
from ..._core.size import contiguous_byte_strides
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._dispatch.arguments.broadcast import sum_to_shape
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.axes import ELEMENTS, Along
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.gradients.array_derivatives import on_arrays
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import explain
from ..._dispatch.public.registry import export_method, public

_ALL = tuple((slice(None),) * count for count in range(65))
"""`_ALL[n]` is the index that passes over n dimensions."""


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; an IndexError if there is none. A 0-d tensor has dimensions 0 and -1."""
    size = ndim or 1
    if type(dim) is not int:
        dim = _as_dim(dim)
    if not -size <= dim < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})")
    return dim % size


def _as_dim(value: Any) -> int:
    """An integer of another type, such as NumPy's, as an int."""
    dim = integer(value)
    if dim is None:
        raise TypeError(f"argument 'dim' must be int, not {type(value).__name__}")
    return dim


def distinct_dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """`dims` counted from the front; a RuntimeError if one is named twice."""
    if len(dims) == 1:
        return (wrap_dim(dims[0], ndim),)
    wrapped = tuple([wrap_dim(each, ndim) for each in dims])
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"dim {max(set(wrapped), key=wrapped.count)} appears multiple times in the list of dims")
    return wrapped


_MOST_DIMS = 64
"""NumPy's limit, and that of most of PyTorch's functions."""


def as_shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    """The shape in `*sizes` arguments: `view(2, 3)`, `view((2, 3))` and `view(x.size())` mean the same."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if len(sizes) > _MOST_DIMS:
        raise RuntimeError(f"only tensors with up to {_MOST_DIMS} dims are supported, not {len(sizes)}")
    for each in sizes:
        if type(each) is not int:
            return tuple([_as_int(each, position) for position, each in enumerate(sizes)])
    return tuple(sizes)


def as_ints(values: Any) -> tuple[int, ...]:
    """One integer or a list of them, however long: sizes of parts and the like are no shape."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    return tuple([each if type(each) is int else _as_int(each, position) for position, each in enumerate(values)])


def _as_int(value: Any, position: int = 0) -> int:
    size = integer(value, position)
    if size is None:
        raise TypeError(f"a size must be a tuple of ints, but found element of type {type(value).__name__}: {value!r}")
    return size


def _misfit(shape: tuple[int, ...], numel: int, given: tuple[int, ...] | None) -> str:
    present = "" if given is None else f": the input has shape {list(given)}"
    return f"shape '{list(shape)}' is invalid for input of size {numel}{present}"


def infer_size(shape: tuple[int, ...], numel: int, given: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """`shape` with its -1, if any, replaced by what is left of `numel`. `given`, the present shape, is for messages."""
    total = 1
    for size in shape:
        if size < 0:
            break
        total *= size
    else:
        if total != numel:
            raise RuntimeError(_misfit(shape, numel, given))
        return shape
    if shape.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred, but the shape {list(shape)} has several -1")
    for position, size in enumerate(shape):
        if size < -1:
            raise RuntimeError(f"invalid shape dimension {size} at index {position} of shape {list(shape)}")
    known = -math.prod(shape)
    if known == 0:
        if numel:
            raise RuntimeError(_misfit(shape, numel, given))
        raise RuntimeError(
            f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    if numel % known:
        raise RuntimeError(_misfit(shape, numel, given))
    return tuple([numel // known if size == -1 else size for size in shape])


def _fitted(sizes: tuple[Any, ...], numel: int) -> tuple[int, ...] | None:
    """The shape of so many elements that sizes mean; None where one has to look closer than at ints and one -1."""
    total = 1
    for size in sizes:
        if type(size) is not int:
            return None
        total *= size
    if total == numel and min(sizes, default=1) > 0 and len(sizes) <= _MOST_DIMS:
        return sizes
    if total < 0 < numel and not numel % total and len(sizes) <= _MOST_DIMS:
        place = sizes.index(-1) if -1 in sizes else -1
        if place >= 0 and min(sizes) == -1 and sizes.count(-1) == 1:
            return (*sizes[:place], -(numel // total), *sizes[place + 1 :])
    return None


def viewed(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` in another shape without a copy, or None where the strides do not allow it."""
    if array.flags.c_contiguous and array.size:
        return array.reshape(shape)
    if array.size == 0:
        same = array.shape == shape
        return restrided(array, shape, array.strides if same else contiguous_byte_strides(shape, array.itemsize))
    strides = row_strides_of(array.shape, array.strides, shape)
    if strides is None:
        return None
    try:  # NumPy's way is the shorter one, but it may choose other strides where a size is 1
        found = array.reshape(shape, copy=False)
    except ValueError:
        return restrided(array, shape, strides)
    return found if found.strides == strides else restrided(array, shape, strides)


def _reshaped_array(array: Any, self_sym_sizes: tuple[int, ...]) -> Any:
    if type(array) is not np.ndarray or (array.flags.c_contiguous and array.size):  # as in `_turned_array`
        return array.reshape(self_sym_sizes)
    return None


@on_arrays(_reshaped_array)
def _reshaped_back(grad: Tensor, self_sym_sizes: tuple[int, ...]) -> Tensor:
    return reshaped(grad, self_sym_sizes)


@primitive("ViewBackward0", view=True, self=_reshaped_back)
def _view(self: Array, size: tuple[int, ...]) -> Array:
    if self.flags.c_contiguous and self.size:
        return self.reshape(size)
    array = viewed(self, size)
    if array is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces). Use .reshape(...) instead. (input size {list(self.shape)}, strides "
            f"{[step // self.itemsize for step in self.strides]}, view size {list(size)})"
        )
    return array


def view(input: Tensor, size: Any = None, *more: int, dtype: Any = None) -> Tensor:
    """The elements in another shape, or their bytes as another dtype; always shares memory."""
    if type(input) not in DIRECT_TYPES and has_override((input,)):
        return run_override(view, (input,), (input, size, *more), {} if dtype is None else {"dtype": dtype})
    try:
        if type(size) is int:
            if size == -1 and not more:  # the commonest of all
                return _view(input, (input._array.size,))
            fitted = _fitted((size, *more), input._array.size)
            if fitted is not None:
                return _view(input, fitted)
            shape = as_shape((size, *more))
        elif isinstance(size, (tuple, list)) or hasattr(size, "__index__"):
            if isinstance(size, tuple) and not more:
                fitted = _fitted(tuple(size), input._array.size)
                if fitted is not None:
                    return _view(input, fitted)
            shape = as_shape((size, *more))
        else:
            from .complex_view import view_dtype

            return view_dtype(input, size if dtype is None else dtype)
        return _view(input, infer_size(shape, input._array.size, input._array.shape))
    except Exception as error:
        explain(error, "view", {"input": input, "size": size, "more": more})
        raise


export_method(view, "view")


@public()
def reshape(input: Tensor, shape: Any, *more: int) -> Tensor:
    """The elements in another shape: a view where the strides allow it, else a copy."""
    if type(shape) is int:
        if shape == -1 and not more:  # the commonest of all
            array = input._array
            return (_view if array.flags.c_contiguous else reshaped)(input, (array.size,))
        sizes: tuple[Any, ...] = (shape, *more)
    else:
        sizes = tuple(shape) if isinstance(shape, tuple) and not more else ()
    fitted = _fitted(sizes, input._array.size) if sizes else None
    if fitted is None:
        fitted = infer_size(as_shape((shape, *more)), input._array.size, input._array.shape)
    return reshaped(input, fitted)


def reshaped(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """`input` in a shape that is known to fit."""
    if input._array.flags.c_contiguous:
        return _view(input, size)
    array = input._array
    if not array.size or row_strides_of(array.shape, array.strides, size) is not None:
        return _reshape_alias(input, size)
    return _unsafe_view(_contiguous_clone(input), size)


@primitive("ReshapeAliasBackward0", view=True, self=_reshaped_back)
def _reshape_alias(self: Array, size: tuple[int, ...]) -> Array:
    return viewed(self, size)


@primitive("CloneBackward0", axes=ELEMENTS, self=lambda grad: grad)
def _contiguous_clone(self: Array) -> Array:
    return self.copy("C") if self.flags.c_contiguous else arrays.contiguous(self)


@primitive("UnsafeViewBackward0", fuses=False, self=_reshaped_back)
def _unsafe_view(self: Array, size: tuple[int, ...]) -> Array:
    return self.reshape(size)


# ----- dimensions exchanged -----------------------------------------------------------------------------------------


def _transposed_array(array: Any, dim0: int, dim1: int) -> Any:
    return None if type(array) is np.ndarray or not array.ndim else array.swapaxes(dim0, dim1)  # as in `_turned_array`


@on_arrays(_transposed_array)
def _transposed_back(grad: Tensor, dim0: int, dim1: int) -> Tensor:
    return _transpose(grad, dim0, dim1)


@primitive("TransposeBackward0", axes=Along("dim0", "dim1"), view=True, self=_transposed_back)
def _transpose(self: Array, dim0: int, dim1: int) -> Array:
    return self.swapaxes(dim0, dim1) if self.ndim else self.view()


@public()
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`input` with two dimensions exchanged; shares memory."""
    ndim = input._array.ndim
    if not (type(dim0) is int is type(dim1) and -ndim <= dim0 < ndim and -ndim <= dim1 < ndim):
        return _transpose(input, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))
    return _transpose(input, dim0 % ndim, dim1 % ndim)


@public()
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`input` with two dimensions exchanged; shares memory. Another name for `transpose`."""
    return transpose(input, dim0, dim1)


@public()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`input` with two dimensions exchanged; shares memory. NumPy's name for `transpose`."""
    return transpose(input, axis0, axis1)


def _turned_array(array: Any) -> Any:
    # On a device nothing of it remembers the other one: a leaf can take it over.
    return None if type(array) is np.ndarray else array.T


@on_arrays(_turned_array)
def _t_back(grad: Tensor) -> Tensor:
    return _t(grad)


@primitive("TBackward0", view=True, self=_t_back)
def _t(self: Array) -> Array:
    return self.T


@public()
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of less than two dimensions as they are."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _t(input)


def _inverse_permute(grad: Tensor, dims: tuple[int, ...]) -> Tensor:
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return _permute(grad, tuple(inverse))


@primitive("PermuteBackward0", view=True, self=_inverse_permute)
def _permute(self: Array, dims: tuple[int, ...]) -> Array:
    return self.transpose(dims)


def permutation(dims: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """The arguments of `permute`, checked to name each dimension once."""
    wanted = as_shape(dims)
    if len(wanted) != ndim:
        raise RuntimeError(
            "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(wanted)}"
        )
    wrapped = tuple([wrap_dim(each, ndim) for each in wanted])
    if len(set(wrapped)) != ndim:
        raise RuntimeError(f"permute(): duplicate dims are not allowed. (dims {list(wanted)})")
    return wrapped


@public()
def permute(input: Tensor, dims: Any, *more: int) -> Tensor:
    """`input` with its dimensions in the order `dims`; shares memory."""
    return _permute(input, permutation((dims, *more), input._array.ndim))


# ----- dimensions added and dropped ---------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def expanded_shape(shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `expand(size)` gives a tensor of `shape`."""
    added = len(size) - len(shape)
    if added < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(shape)}): {list(shape)} cannot become {list(size)}"
        )
    result = []
    for position, wanted in enumerate(size):
        given = shape[position - added] if position >= added else None
        if wanted == -1:
            if given is None:
                raise RuntimeError(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
                    f"{position}"
                )
            wanted = given
        elif wanted < 0 if given is None else given not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({given}) at non-singleton "
                f"dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
        result.append(wanted)
    return tuple(result)


@primitive("ExpandBackward0", view=True, self=lambda grad, self_sym_sizes: sum_to_shape(grad, self_sym_sizes))
def _expand(self: Array, size: tuple[int, ...]) -> Array:
    shape, given = self.shape, self.strides
    if not shape and size and type(self) is np.ndarray:  # one element, as the gradient of a sum is
        return np.ndarray(size, self.dtype, self, 0, (0,) * len(size))
    if shape == size:
        return self.view()
    return restrided(self, size, _expanded_strides(shape, given, size))


@functools.lru_cache(maxsize=1024)
def _expanded_strides(shape: tuple[int, ...], given: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    added = len(size) - len(shape)
    strides = [0 if n != wanted else step for n, wanted, step in zip(shape, size[added:], given, strict=True)]
    for position in range(added - 1, -1, -1):  # a new dimension of size 1 steps over what is to its right
        step = size[position + 1] * strides[0] if strides else 0
        strides.insert(0, step if size[position] == 1 else 0)
    return tuple(strides)


@public(function=False)
def expand(input: Tensor, size: Any, *more: int, implicit: bool = False) -> Tensor:
    """A view with dimensions of size 1 stretched; -1 keeps a size."""
    return _expand(input, expanded_shape(input._array.shape, as_shape((size, *more))))


@primitive("SqueezeBackward0", view=True, self=_reshaped_back)
def _squeeze_all(self: Array) -> Array:
    return self.squeeze()


@on_arrays(lambda array, self_sym_sizes, dim: _reshaped_array(array, self_sym_sizes))
def _stretched_back(grad: Tensor, self_sym_sizes: tuple[int, ...], dim: Any) -> Tensor:
    return reshaped(grad, self_sym_sizes)


@primitive("SqueezeBackward1", view=True, self=_stretched_back)
def _squeeze_dim(self: Array, dim: int) -> Array:
    return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self.view()


@primitive("SqueezeBackward2", view=True, self=_stretched_back)
def _squeeze_dims(self: Array, dim: tuple[int, ...]) -> Array:
    return self.squeeze(tuple([each for each in dim if self.ndim and self.shape[each] == 1]))


@public(method=False)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """`input` without its dimensions of size 1, or without those of them that `dim` names; shares memory."""
    if dim is None:
        return _squeeze_all(input)
    ndim = input._array.ndim
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims(input, distinct_dims(dim, ndim))
    return _squeeze_dim(input, wrap_dim(dim, ndim))


@public(function=False, name="squeeze")
def _method_squeeze(input: Tensor, dim: Any = None, *more: int) -> Tensor:
    """`input` without its dimensions of size 1, or without those of them that `dim` names; shares memory."""
    return squeeze(input, (dim, *more) if more else dim)


@primitive("UnsqueezeBackward0", axes=Along("dim", extra=1), view=True, self=lambda grad, dim: _squeeze_dim(grad, dim))
def _unsqueeze(self: Array, dim: int) -> Array:
    if dim == 0 and self.ndim == 0:
        return self.reshape(1)
    # The new dimension has the stride of a contiguous tensor: what lies under one step of it.
    shape, strides = self.shape, self.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else self.itemsize
    shape, strides = (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:])
    if type(self) is np.ndarray:  # NumPy's way is the shorter one, but it may choose other strides where a size is 1
        found = self.reshape(shape)
        if found.strides == strides:
            return found
    return restrided(self, shape, strides)


@public()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """`input` with a new dimension of size 1 at `dim`; shares memory."""
    dims = input._array.ndim + 1
    if type(dim) is int and -dims <= dim < dims:
        return _unsqueeze(input, dim % dims)
    return _unsqueeze(input, wrap_dim(dim, dims))
