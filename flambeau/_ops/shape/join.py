"""Tensors put together: cat, stack and their like; grids and products of vectors."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends import arrays as array_functions
from ..._core.backend import LARGE, undispatched
from ..._core.dtype import LEGACY_NAMES, can_cast, promote_types
from ..._core.geometry.layout import contiguous_array, is_channels_last
from ..._core.modes import THREAD
from ..._core.tensor import PLAIN_TYPES, Tensor, wrap
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.call.results import finished
from ..._dispatch.changes.inplace import check_separate
from ..._dispatch.dispatch import Array, fresh, primitive
from ..._dispatch.gradients.array_derivatives import unrecorded
from ..._dispatch.gradients.undifferentiable import no_derivative
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from .named_shapes import atleast_1d, atleast_2d, atleast_3d, tensor_list
from .parts import _slice
from .split import unbind
from .view import _ALL, reshaped, wrap_dim

_concatenate = undispatched(np.concatenate)
_NO_ELEMENTS = (0,)
"""The shape that `cat` passes over, whatever the shapes of the others: an old habit of PyTorch's."""


def _checked_list(tensors: Any, name: str) -> list[Tensor]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            position = next(i for i, each in enumerate(tensors) if each is tensor)
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__} (in {name})"
            )
    return list(tensors)


def _write_joined(result: Tensor, out: Any, operands: tuple[Any, ...]) -> Tensor:
    if isinstance(out, Tensor) and not can_cast(result._kind.dtype, out._kind.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {LEGACY_NAMES[out._kind.dtype]}: the "
            f"result is {result._kind.dtype}"
        )
    if isinstance(out, Tensor):
        for each in operands[0]:
            check_separate(out, each)
    return write_out(result, out, operands)


def common_dtype(tensors: Sequence[Tensor]) -> Any:
    """The dtype to which all `tensors` are promoted."""
    kinds = {each._kind for each in tensors}
    if len(kinds) == 1:
        return tensors[0]._kind.dtype
    return functools.reduce(promote_types, [each._kind.dtype for each in tensors])


def _side_by_side(arrays: Sequence[Any], dim: int) -> Any:
    """`np.concatenate` of arrays of one dtype without gaps."""
    done = _joined_by_lines(arrays, dim)
    return np.concatenate(arrays, dim) if done is None else done


def _joined_by_lines(arrays: Sequence[Any], dim: int) -> Any:
    """Many elements of one dtype side by side by a kernel of the backend; None: there is none for them."""
    if sum([each.size for each in arrays]) < LARGE:
        return None
    return array_functions.concatenated(arrays, dim)


def _concatenated(arrays: Sequence[Any], dim: int, array_type: np.dtype[Any]) -> Any:
    is_alike = all([each.dtype is array_type for each in arrays])  # noqa: C419 (few, quicker)
    if is_alike and all([each.flags.c_contiguous for each in arrays]):  # noqa: C419 (few, quicker)
        return _side_by_side(arrays, dim)
    first = arrays[0]
    shape = list(first.shape)
    shape[dim] = sum([each.shape[dim] for each in arrays])
    if all(map(is_channels_last, arrays)):
        order = (0, first.ndim - 1, *range(1, first.ndim - 1))
        result = np.empty([shape[0], *shape[2:], shape[1]], array_type, like=first).transpose(order)
    elif is_alike and (done := _joined_by_lines(arrays, dim)) is not None:
        return done
    else:
        result = np.empty(shape, array_type, like=first)
    return np.concatenate(arrays, dim, result, casting="unsafe")


def _cat_gradients(grad: Tensor, tensors_sym_sizes: Any, dim: int) -> list[Any]:
    results: list[Any] = []
    start = 0
    on_arrays = grad._kind.is_cpu and unrecorded(grad)
    for shape in tensors_sym_sizes:
        if shape == _NO_ELEMENTS:
            results.append(grad.new_zeros(shape))
            continue
        end = start + shape[dim]
        if not start and end == grad._array.shape[dim]:  # beside tensors without elements: a cache that begins
            results.append(grad)
        elif on_arrays:
            results.append(fresh(grad._array[(*_ALL[dim], slice(start, end))], grad))
        else:
            results.append(_slice(grad, dim, start, end, 1))
        start = end
    return results


@primitive("CatBackward0", tensors=_cat_gradients)
def _cat(tensors: list[Array], dim: int, dtype: Any) -> Array:
    array_type = dtype.numpy
    for each in tensors:
        if each.dtype is not array_type or each.ndim < 2 or not each.flags.c_contiguous:
            break
    else:
        return _side_by_side(tensors, dim)
    arrays = [each for each in tensors if each.shape != _NO_ELEMENTS]
    if not arrays:
        return np.empty(0, array_type, like=tensors[0])
    if len(arrays) < len(tensors):  # what is empty is row-major, and PyTorch asks it too
        arrays = [contiguous_array(each) for each in arrays]
    return _concatenated(arrays, dim, array_type)


def _grown_by(arrays: Sequence[Any], dim: int) -> list[Any]:
    """Views of arrays with a further dimension of size 1."""
    index = (*_ALL[dim], None)
    return [each[index] for each in arrays]


def _stacked(arrays: Sequence[Any], dim: int) -> Any:
    """NumPy's arrays without gaps side by side along a new dimension."""
    first = arrays[0]
    if not dim and first.ndim and all([each.shape == first.shape for each in arrays]):  # noqa: C419 (few, quicker)
        joined = np.empty((len(arrays), *first.shape), first.dtype)
        _concatenate(arrays, 0, joined.reshape(-1, *first.shape[1:]))
        return joined
    return _concatenate(_grown_by(arrays, dim), dim)


def _with_gaps(arrays: Sequence[Any], dim: int) -> Any:
    """Arrays of which some have gaps side by side, row by row."""
    first = arrays[0]
    shape = list(first.shape)
    shape[dim] = sum([each.shape[dim] for each in arrays])
    return _concatenate(arrays, dim, np.empty(shape, first.dtype))


def _plain_cat(tensors: Any, dim: int, stacked: bool = False) -> Tensor | None:
    """The short way for tensors of one kind that fit together; None where it does not apply.

    `stacked`: along a new dimension.
    """
    if type(tensors) not in (list, tuple) or not tensors or type(tensors[0]) not in PLAIN_TYPES:
        return None
    first = tensors[0]
    if first._array.shape == _NO_ELEMENTS and not stacked:  # such as a cache that begins
        first = next((each for each in tensors if type(each) in PLAIN_TYPES and each._array.size), first)
    modes, kind = THREAD.modes, first._kind
    dims = first._array.ndim + stacked
    if not kind.is_cpu or kind not in modes.direct or type(dim) is not int or not -dims <= dim < dims:
        return None
    dim %= dims
    arrays, size, has_gaps = [], 0, False
    for tensor in tensors:
        if type(tensor) not in PLAIN_TYPES or tensor._kind is not kind:
            return None
        array = tensor._array
        elements = array.size
        if not elements:
            if stacked or array.shape != _NO_ELEMENTS:
                return None
            continue
        if not array.flags.c_contiguous:
            has_gaps = True
        size += elements
        arrays.append(array)
    if not arrays or (has_gaps and (stacked or (dims > 3 and all(map(is_channels_last, arrays))))):
        return None
    try:
        joined = None
        if size >= LARGE:
            if len(arrays) == 1 and has_gaps:  # beside tensors without elements
                joined = array_functions.contiguous(arrays[0])
            else:
                joined = array_functions.concatenated(arrays, dim, stacked)
        if joined is None:
            plain_way = _with_gaps if has_gaps else _stacked if stacked else _concatenate
            joined = plain_way(arrays, dim)
    except (ValueError, IndexError):
        return None  # the long way knows what to say
    return finished(_stack if stacked else _cat, (list(tensors), dim, kind.dtype), tensors, joined, kind)


@public("concat", "concatenate", method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """`tensors` one after the other along `dim`."""
    quick = _plain_cat(tensors, dim)
    if quick is not None:
        return quick
    given = _checked_list(tensors, "cat")
    if not given:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first: tuple[int, ...] | None = None
    for position, tensor in enumerate(given):
        shape = tensor._array.shape
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
        if shape == _NO_ELEMENTS:
            continue
        if first is None:
            first = shape
            dim = wrap_dim(dim, len(shape))
        elif shape[:dim] != first[:dim] or shape[dim + 1 :] != first[dim + 1 :]:
            raise _cat_error(first, shape, dim, position)
    return _cat(given, 0 if first is None else dim, common_dtype(given))


def _cat_error(first: tuple[int, ...], shape: tuple[int, ...], dim: int, position: int) -> RuntimeError:
    if len(first) != len(shape):
        return RuntimeError(
            f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)} (shapes {list(first)} and "
            f"{list(shape)}, tensor number {position})"
        )
    wrong = next(i for i in range(len(first)) if i != dim and first[i] != shape[i])
    return RuntimeError(
        f"Sizes of tensors must match except in dimension {dim}. Expected size {first[wrong]} but got size "
        f"{shape[wrong]} for tensor number {position} in the list. (dimension {wrong}; shapes {list(first)} and "
        f"{list(shape)})"
    )


@primitive("StackBackward0", tensors=lambda grad, dim: list(unbind(grad, dim)))
def _stack(tensors: list[Array], dim: int, dtype: Any) -> Array:
    return _concatenated(_grown_by(tensors, dim), dim, dtype.numpy)


@public(method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new dimension `dim`."""
    quick = _plain_cat(tensors, dim, stacked=True)
    if quick is not None:
        return quick
    given = _checked_list(tensors, "stack")
    if not given:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = given[0]._array.shape
    dim = wrap_dim(dim, len(first) + 1)
    for position, tensor in enumerate(given):
        if tensor._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(tensor._array.shape)} at entry {position}"
            )
    return _stack(given, dim, common_dtype(given))


def _grown(tensors: Any, name: str, grow: Any) -> list[Tensor]:
    given = _checked_list(tensors, name)
    if not given:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return [grow(each) for each in given]


@public(method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def hstack(tensors: list[Tensor]) -> Tensor:
    """`tensors` one after the other along the second dimension, or the only one they have."""
    given = _grown(tensors, "hstack", atleast_1d)
    return cat(given, 0 if given[0]._array.ndim == 1 else 1)


@public("row_stack", method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def vstack(tensors: list[Tensor]) -> Tensor:
    """`tensors` one below the other: vectors become rows."""
    return cat(_grown(tensors, "vstack", atleast_2d), 0)


@public(method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def dstack(tensors: list[Tensor]) -> Tensor:
    """`tensors` one after the other along the third dimension."""
    return cat(_grown(tensors, "dstack", atleast_3d), 2)


def _as_column(tensor: Tensor) -> Tensor:
    return tensor if tensor._array.ndim > 1 else reshaped(tensor, (tensor._array.size, 1))


@public(method=False, out=_write_joined, autocast=on(cpu=WIDEST))
def column_stack(tensors: list[Tensor]) -> Tensor:
    """`tensors` side by side: vectors become columns."""
    return cat(_grown(tensors, "column_stack", _as_column), 1)


def _block_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (2 - len(shape)) + shape


def _block_gradients(grad: Tensor, tensors_sym_sizes: Any) -> list[Any]:
    results = []
    row = column = 0
    for shape in tensors_sym_sizes:
        height, width = _block_shape(shape)
        block = _slice(_slice(grad, 0, row, row + height, 1), 1, column, column + width, 1)
        results.append(block.reshape(shape))
        row, column = row + height, column + width
    return results


@primitive("BlockDiagBackward0", tensors=_block_gradients)
def _block_diag(tensors: list[Array], dtype: Any) -> Array:
    blocks = [each.reshape(_block_shape(each.shape)) for each in tensors]
    result = np.zeros([sum([each.shape[dim] for each in blocks]) for dim in (0, 1)], dtype.numpy, like=blocks[0])
    row = column = 0
    for block in blocks:
        height, width = block.shape
        result[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return result


@public(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with `tensors` as blocks on its diagonal and zeros elsewhere."""
    given = tensor_list(tensors)
    for position, tensor in enumerate(given):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}")
        if tensor._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {position} has {tensor._array.ndim} dimensions"
            )
    if not given:
        from ..create.constants import empty

        return empty(1, 0)
    return _block_diag(list(given), common_dtype(given))


@public(method=False)
def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: for each vector a tensor in which it runs along its own dimension.

    `indexing="ij"` gives vector i dimension i; with "xy" the first two change places.
    """
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument. Write "
            'indexing="ij" for what this call does.',
            UserWarning,
            stacklevel=3,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    return _grid(tensor_list(tensors), indexing == "xy")


def _grid(vectors: Sequence[Tensor], swapped: bool) -> tuple[Tensor, ...]:
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for vector in vectors:
        if vector._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {list(vector._array.shape)}"
            )
        if vector._kind is not vectors[0]._kind:
            what = "dtype" if vector.dtype is not vectors[0].dtype else "device"
            raise RuntimeError(f"torch.meshgrid expects all tensors to have the same {what}")
    places = list(range(len(vectors)))
    if swapped and len(vectors) > 1:
        places[:2] = 1, 0
    shape = [0] * len(vectors)
    for place, vector in zip(places, vectors, strict=True):
        shape[place] = vector._array.size
    results = []
    for place, vector in zip(places, vectors, strict=True):
        own = [1] * len(vectors)
        own[place] = vector._array.size
        results.append(vector.view(own).expand(shape))
    return tuple(results)


def _check_vector(tensor: Tensor) -> None:
    if tensor._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._array.shape)}")


@public(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, one in each row."""
    vectors = tensor_list(tensors)
    for vector in vectors:
        _check_vector(vector)
    if len(vectors) == 1:
        only: Tensor = vectors[0]
        return only
    return stack([each.flatten() for each in _grid(vectors, False)], 1)


@public(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, one in each row, as `itertools.combinations` orders them."""
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_zeros((0,))
    chosen = np.ones((input._array.size,) * r, bool)
    for before, after in itertools.pairwise(np.ogrid[(slice(input._array.size),) * r]):
        chosen &= before <= after if with_replacement else before < after
    mask = wrap(chosen, input._kind.device)
    return stack([each.masked_select(mask) for each in _grid([input] * r, False)], 1)


@primitive("NotImplemented", tensors=no_derivative("_chunk_cat"))
def _chunks(tensors: list[Array], dim: int, num_chunks: int) -> Array:
    rows = []
    for array in tensors:
        length = -(-array.shape[dim] // num_chunks)
        padded = np.zeros((*array.shape[:dim], length * num_chunks, *array.shape[dim + 1 :]), array.dtype, like=array)
        padded[(*_ALL[dim], slice(array.shape[dim]))] = array
        rows.append(padded.reshape(*array.shape[:dim], num_chunks, -1))
    return np.concatenate(rows, dim + 1)


@public(method=False, out=_write_joined)
def _chunk_cat(tensors: list[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Every tensor cut along `dim` into chunks, flattened and filled up with zeros; those of one place joined."""
    given = _checked_list(tensors, "_chunk_cat")
    if not given:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    shapes = [each._array.shape for each in given]
    if len({each.device for each in given}) > 1:
        raise RuntimeError("_chunk_cat expects all inputs tensors on the same device")
    if len({each.dtype for each in given}) > 1:
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    if len({len(shape) for shape in shapes}) == 1 and shapes[0]:
        dim = wrap_dim(dim, len(shapes[0]))
    elif dim < 0:
        raise RuntimeError(f"_chunk_cat expects non-negative dim when input tensors have different ndims, got {dim}")
    for shape in shapes:
        if 0 in shape:
            raise RuntimeError(f"_chunk_cat expects non-empty tensor, got shape {list(shape)}")
        if dim >= len(shape):
            raise RuntimeError(f"_chunk_cat expects dim < ndim for all input tensors, got {dim} and {list(shape)}")
        if shape[:dim] != shapes[0][:dim]:
            raise RuntimeError(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors, got "
                f"{list(shapes[0])} and {list(shape)}"
            )
    return _chunks(given, dim, num_chunks)
