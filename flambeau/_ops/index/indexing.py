"""PyTorch's indexing rules on NumPy arrays.

An index is applied in two stages, as in PyTorch. The basic stage takes ints, slices, None, Ellipsis and True/False and
gives a view. The advanced stage applies index arrays to dimensions of that view. This is where PyTorch differs from
NumPy: in `x[0, :, rows]` the int is gone before `rows` is looked at, so it does not move the result's dimensions.

Tensors inside an index are recognised by their `_array` attribute. A plain NumPy array counts as a sequence of
numbers, as in PyTorch: `x[np.array([1.0])]` works where `x[torch.tensor([1.0])]` is an error.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._backends.arrays import add_slices, within
from ..._core.arrays.abstract import is_abstract
from ..._core.arrays.from_data import BOOL, FLOAT32, INT64, array_from_data, is_sequence, type_name
from ..._core.arrays.lazy_signs import content
from ..._core.arrays.narrow import as_type
from ..._core.arrays.quick import broadcast, joint_shape
from ..._core.backend import LARGE, all_within, as_array, beside, is_array, is_of_host, read
from ..._core.dtype import WIDE_TYPES
from ..._core.geometry.layout import contiguous_array
from ..._core.modes import beside_the_ops
from ..._core.size import fits_int64

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Advanced = tuple[Array | None, ...]

_UINT8 = np.dtype(np.uint8)
_INT32 = np.dtype(np.int32)
_ALL = slice(None)
_TRUE_INDEX = np.zeros(1, INT64)
_FALSE_INDEX = np.zeros(0, INT64)
_TRUE_INDEX.flags.writeable = _FALSE_INDEX.flags.writeable = False
_TUPLE_LIMIT = 32  # longer lists are never read as tuples
SMALL = 256  # elements; below it one general call beats any preparation
_LONG_ROW = 128  # elements; from here on adding whole rows beats adding elements


class IndexPlan(NamedTuple):
    """`array[basic]` is a view; `advanced`, if any, then holds one index array or None for each of its dimensions."""

    basic: tuple[Any, ...]
    advanced: Advanced | None


def basic_index(index: Any, ndim: int) -> Any | None:
    """The NumPy index that gives the same view of an array of `ndim` dimensions, or None if `index` needs a plan.

    Only types are looked at: NumPy's IndexError for a bad position means that `plan_index` will raise the right one.
    """
    cls = type(index)
    if cls is int:
        return index if ndim > 1 else (index, ...)
    if cls is slice:
        step = index.step
        return index if step is None or (type(step) is int and step > 0) else None
    if cls is tuple:
        has_ellipsis = False
        for item in index:
            cls = type(item)
            if cls is int or item is None:
                continue
            if cls is slice:
                step = item.step
                if step is None or (type(step) is int and step > 0):
                    continue
                return None
            if item is ... and not has_ellipsis:
                has_ellipsis = True
                continue
            return None
        # An Ellipsis at the end makes NumPy return a 0-d view where it would return a scalar.
        return index if has_ellipsis else (*index, ...)
    if index is ...:
        return index
    return (None,) if index is None else None


def plan_index(index: Any, shape: Shape) -> IndexPlan:
    """The two stages of `x[index]` for a tensor `x` of this shape.

    >>> plan_index((0, slice(1, None), [2, 0]), (3, 4, 5))
    IndexPlan(basic=(0, slice(1, 4, 1), slice(None, None, None), Ellipsis), advanced=(None, array([2, 0])))
    """
    if not shape:
        _check_zero_dim(index)
    items = [_classify(item) for item in _as_tuple(index)]
    consumed = sum(map(_dims_consumed, items))
    if consumed > len(shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(shape)}: the index takes {consumed} dimensions, "
            f"the shape is {list(shape)}"
        )
    basic: list[Any] = []
    entries: list[Array | None] = []  # of the view: an index array or mask, or None for each untouched dimension
    view_shape: list[int] = []
    source = 0  # the next dimension of the tensor
    for item in items:
        if item is ...:
            # A second Ellipsis is as wide as the first one, even where that leaves the tensor.
            width = len(shape) - consumed
            covered = shape[source : source + width]
            basic += [_ALL] * len(covered)
            entries += [None] * len(covered)
            view_shape += covered
            source += width
        elif source + _dims_consumed(item) > len(shape):
            raise IndexError(
                "Dimension out of range: more than one Ellipsis (`...`) in the index of a tensor of shape "
                f"{list(shape)}; keep one of them"
            )
        elif item is None:
            basic.append(None)
            entries.append(None)
            view_shape.append(1)
        elif item is True or item is False:
            basic.append(None)
            entries.append(_TRUE_INDEX if item else _FALSE_INDEX)
            view_shape.append(1)
        elif type(item) is int:
            basic.append(_checked_position(item, source, shape))
            source += 1
        elif type(item) is slice:
            positions = _checked_slice(item, shape[source])
            basic.append(slice(positions.start, positions.stop, positions.step))
            entries.append(None)
            view_shape.append(len(positions))
            source += 1
        else:
            width = _dims_consumed(item)
            basic += [_ALL] * width
            entries.append(item)
            view_shape += shape[source : source + width]
            source += width
    basic.append(...)
    if all(entry is None for entry in entries):
        return IndexPlan(tuple(basic), None)
    entries += [None] * (len(shape) - source)
    view_shape += shape[source:]
    return IndexPlan(tuple(basic), _expand_masks(entries, view_shape))


# Reading an index


def _check_zero_dim(index: Any) -> None:
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number; "
            f"it has no dimension for the index {index} to choose from"
        )
    if isinstance(index, slice):
        raise IndexError("slice() cannot be applied to a 0-dim tensor; use tensor[None] to give it a dimension")


def _as_tuple(index: Any) -> Sequence[Any]:
    """The items of an index; a list counts as a tuple if something in it could not stand in a list of positions."""
    if isinstance(index, tuple):
        return index
    if _tensor_array(index) is not None or isinstance(index, np.ndarray) or not is_sequence(index):
        return (index,)
    if not hasattr(index, "__len__") or len(index) >= _TUPLE_LIMIT:
        return (index,)
    items = [index[position] for position in range(len(index))]
    if not any(item is None or item is ... or isinstance(item, slice) or is_sequence(item) for item in items):
        return (index,)
    warnings.warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated: write x[tuple(index)] instead of "
        "x[index], or x[torch.tensor(index)] to select rows",
        UserWarning,
        stacklevel=4,
    )
    return items


def _tensor_array(value: Any) -> Array | None:
    array = getattr(value, "_array", None)
    if not is_array(array):
        return None
    return content(value) if value._kind.indirect else array


def _classify(item: Any) -> Any:
    """One item as None, Ellipsis, bool, int, slice, or an array of at least one dimension, int64 or bool."""
    if item is None or item is ... or isinstance(item, (bool, slice)):
        return item
    if isinstance(item, (int, np.integer)):
        return _checked_int64(int(item))
    array = _tensor_array(item)
    if array is not None:
        return _classify_array(array)
    if is_sequence(item):
        return _classify_array(_array_from_sequence(item))
    try:
        return _checked_int64(operator.index(item))
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type_name(type(item))})"
        ) from None


def _classify_array(array: Array) -> Any:
    dtype = array.dtype
    if array.ndim == 0:
        if dtype in (BOOL, _UINT8):
            return bool(read(array))
        if dtype.kind in "iu":
            return _checked_int64(int(read(array)))
    elif dtype in (INT64, BOOL):
        return array
    elif dtype == _INT32:
        beside_the_ops()
        return array.astype(INT64)
    elif dtype == _UINT8:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead: mask.bool()",
            UserWarning,
            stacklevel=5,
        )
        beside_the_ops()
        return array != 0
    raise IndexError(
        f"tensors used as indices must be long, int, byte or bool tensors (got {dtype.name} of shape "
        f"{list(array.shape)}); convert it with .long(), or with .bool() if it is a mask"
    )


def _array_from_sequence(sequence: Any) -> Array:
    """An index array from a list or NumPy array: bool and uint8 are masks, every other number is cast to int64."""
    if isinstance(sequence, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(sequence).__name__}': {sequence!r} is not an index")
    array = array_from_data(sequence, None, FLOAT32)
    if array.dtype in (INT64, BOOL, _UINT8):
        return array
    return array_from_data(sequence, INT64, FLOAT32)


def _checked_int64(position: int) -> int:
    if not fits_int64(position):
        raise ValueError(f"Overflow when unpacking long long: the index {position} does not fit in 64 bits")
    return position


def _dims_consumed(item: Any) -> int:
    if item is None or item is ... or item is True or item is False:
        return 0
    return item.ndim if is_array(item) and item.dtype == BOOL else 1


def _checked_position(position: int, dim: int, shape: Shape) -> int:
    size = shape[dim]
    if not -size <= position < size:
        raise IndexError(_out_of_bounds(position, dim, shape))
    return position


def _out_of_bounds(position: int, dim: int, shape: Sequence[int]) -> str:
    size = shape[dim]
    valid = f"valid indices are {-size} to {size - 1}" if size else "the dimension is empty"
    return f"index {position} is out of bounds for dimension {dim} with size {size} (shape {list(shape)}; {valid})"


def _checked_slice(item: slice, size: int) -> range:
    positions = range(*item.indices(size))  # raises PyTorch's own errors for a zero step and for parts like 1.5
    if positions.step < 0:
        raise ValueError(
            f"step must be greater than zero (got {positions.step}); use torch.flip to reverse a dimension"
        )
    return positions


def _expand_masks(entries: list[Array | None], view_shape: list[int]) -> Advanced:
    """Index arrays for `entries`, each mask replaced by the positions of its True elements, one array a dimension."""
    advanced: list[Array | None] = []
    for entry in entries:
        if entry is None or entry.dtype != BOOL:
            advanced.append(entry)
            continue
        start = len(advanced)
        for offset, size in enumerate(entry.shape):
            if size != view_shape[start + offset]:
                raise IndexError(
                    f"The shape of the mask {list(entry.shape)} at index {offset} does not match the shape of the "
                    f"indexed tensor {view_shape} at index {start + offset}: a mask has the sizes of the dimensions "
                    "that it selects from"
                )
        beside_the_ops()
        advanced += entry.nonzero()
    return tuple(advanced)


# The advanced stage


def _positions_beside(view: Array, advanced: Advanced) -> Advanced:
    """Lists and tensors of the CPU may name positions on any device."""
    if type(view) is np.ndarray:
        return advanced
    return tuple([None if entry is None else beside(entry, view) for entry in advanced])


def advanced_get(view: Array, advanced: Advanced) -> Array:
    """A new array with the elements that `advanced` selects, in the memory order that PyTorch gives it."""
    advanced = _positions_beside(view, advanced)
    indexed = [dim for dim, entry in enumerate(advanced) if entry is not None]
    dense = view.flags.c_contiguous
    if not view.size or type(view) is not np.ndarray:  # libraries of devices look at no position
        _check_arrays(view.shape, advanced)
    try:
        if dense and len(indexed) == 1:
            # `take` is the faster call, but it copies a view that is not contiguous.
            positions: Any = advanced[indexed[0]]
            result = view.take(positions, axis=indexed[0])
        else:
            result = view[_numpy_key(advanced)]
    except IndexError:
        _check_arrays(view.shape, advanced)
        return np.empty(indexed_shape(view.shape, advanced), view.dtype, like=view)
    if dense and all(entry is None or entry.ndim < 2 or entry.flags.c_contiguous for entry in advanced):
        dense_result: Array = contiguous_array(result)
        return dense_result
    layouts = tuple([None if entry is None else (entry.shape, entry.strides) for entry in advanced])
    return _in_memory_order(result, *_memory_order(view.strides, layouts, result.shape))


def advanced_put(view: Array, advanced: Advanced, values: Any, accumulate: bool = False) -> None:
    """Write `values` (or add them, with `accumulate`) to the elements of `view` that `advanced` selects.

    Values are broadcast to the selection. With `accumulate`, an element that is selected several times receives every
    one of its values; 16-bit floats are summed in float32 and rounded once.
    """
    advanced = _positions_beside(view, advanced)
    selects = view.size and all(entry is None or entry.size for entry in advanced)
    if is_abstract(view) or not (accumulate or selects):
        # There is nothing to write. NumPy would take values of any shape, and complain about positions.
        if any(entry is not None and entry.dtype == np.bool_ and is_abstract(entry) for entry in advanced):
            return  # how many elements a mask without data selects is unknown
        _check_arrays(view.shape, advanced)
        _broadcast_values(values, view, indexed_shape(view.shape, advanced))
    elif accumulate:
        if _added_to_slices(view, advanced, values):
            return
        _check_arrays(view.shape, advanced)
        _accumulate(view, advanced, _broadcast_values(values, view, indexed_shape(view.shape, advanced)))
    else:
        if type(view) is not np.ndarray:
            _check_arrays(view.shape, advanced)
        try:
            view[_numpy_key(advanced)] = values
        except IndexError:
            _check_arrays(view.shape, advanced)
            raise
        except ValueError:
            spread_out = _broadcast_values(values, view, indexed_shape(view.shape, advanced))
            view[_numpy_key(advanced)] = spread_out


def assign_to_view(view: Array, values: Any) -> None:
    """`view[...] = values` with PyTorch's rule: broadcast, after leading dimensions of size 1 are dropped."""
    if view.dtype in WIDE_TYPES and getattr(values, "dtype", None) is not view.dtype:
        values = as_type(np.asarray(values), view.dtype)
    try:
        view[...] = values
    except ValueError:
        array = _without_leading_ones(np.asarray(values))
        if array.ndim > view.ndim:
            raise RuntimeError(
                f"expand: the number of sizes provided ({view.ndim}) must be greater or equal to the number of "
                f"dimensions in the tensor ({array.ndim}): cannot assign shape {list(array.shape)} to shape "
                f"{list(view.shape)}"
            ) from None
        first = view.ndim - array.ndim
        for dim in range(view.ndim - 1, first - 1, -1):
            have, want = array.shape[dim - first], view.shape[dim]
            if have not in (1, want):
                raise RuntimeError(
                    f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                    f"dimension {dim}.  Target sizes: {list(view.shape)}.  Tensor sizes: {list(array.shape)}"
                ) from None
        raise


def indexed_shape(shape: Shape, advanced: Advanced) -> Shape:
    """The shape of the selection that `advanced` makes from a view of this shape."""
    index_shape = _broadcast_shape([entry for entry in advanced if entry is not None])
    front, untouched = _result_dims(advanced)
    sizes = tuple(shape[dim] for dim in untouched)
    return sizes[:front] + index_shape + sizes[front:]


def _numpy_key(advanced: Advanced) -> tuple[Any, ...]:
    return tuple(_ALL if entry is None else entry for entry in advanced)


def _result_dims(advanced: Sequence[Any]) -> tuple[int, list[int]]:
    """Where the index arrays' dimensions go among the untouched ones, and which dimensions are untouched.

    Neighbouring index arrays are replaced in place; separated ones move to the front.
    """
    indexed = [dim for dim, entry in enumerate(advanced) if entry is not None]
    untouched = [dim for dim, entry in enumerate(advanced) if entry is None]
    adjacent = indexed[-1] - indexed[0] == len(indexed) - 1
    return (indexed[0] if adjacent else 0), untouched


def _broadcast_shape(arrays: list[Array]) -> Shape:
    try:
        return joint_shape(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}; "
            "to select every combination of rows and columns write x[rows[:, None], columns]"
        ) from None


def _check_arrays(shape: Shape, advanced: Advanced) -> None:
    """Raise PyTorch's error if the index arrays do not fit each other or the shape.

    As in PyTorch, positions are not looked at when nothing is selected.
    """
    index_shape = _broadcast_shape([entry for entry in advanced if entry is not None])
    if 0 in index_shape:
        return
    indexed = [(dim, entry) for dim, entry in enumerate(advanced) if entry is not None]
    for dim, _ in indexed:
        if shape[dim] == 0:
            raise IndexError(
                f"index is out of bounds for dimension with size 0: dimension {dim} of shape {list(shape)}"
            )
    if 0 in shape:
        return
    for dim, entry in indexed:
        size = shape[dim]
        if not within(entry, size) and not all_within(entry, -size, size, "indexing"):
            wrong = entry[(entry < -size) | (entry >= size)]
            raise IndexError(_out_of_bounds(int(wrong[0]), dim, shape))


def _without_leading_ones(values: Array) -> Array:
    shape = values.shape
    ones = 0
    while ones < len(shape) and shape[ones] == 1:
        ones += 1
    return values.reshape(shape[ones:]) if ones else values


def _broadcast_values(values: Any, view: Array, target: Shape) -> Array:
    """Values for a selection of the shape `target` from `view`."""
    array: Array = as_array(values)
    if array.dtype is not view.dtype:
        array = array.astype(view.dtype)
    if array.shape == target:
        return array
    try:
        result: Array = broadcast(_without_leading_ones(array), target)
        return result
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(array.shape)} cannot be broadcast to indexing result of "
            f"shape {list(target)}"
        ) from None


# Memory order of a result


@functools.lru_cache(maxsize=512)
def _memory_order(
    view_strides: Shape, layouts: tuple[tuple[Shape, Shape] | None, ...], result_shape: Shape
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The result's dimensions from the slowest to the fastest, as PyTorch's element-wise loops order them, and where
    each of them stands there. `layouts`: shapes and strides of the index arrays.

    Dimensions are sorted by the strides of the view, then by those of the index arrays; a stride of zero (the
    dimension does not exist there) says nothing, and the first operand that says something decides.
    """
    one = np.empty(1, np.int8)  # nobody looks at elements
    arrays = [np.lib.stride_tricks.as_strided(one, *layout) for layout in layouts if layout is not None]
    front, untouched = _result_dims(layouts)
    index_ndim = len(result_shape) - len(untouched)
    outer = [view_strides[dim] for dim in untouched]
    operands = [outer[:front] + [0] * index_ndim + outer[front:]]
    before, after = [0] * front, [0] * (len(untouched) - front)
    operands += [before + list(array.strides) + after for array in np.broadcast_arrays(*arrays)]

    def comes_after(left: int, right: int) -> int:
        for strides in operands:
            if strides[left] and strides[right]:
                if strides[left] != strides[right]:
                    return 1 if strides[left] > strides[right] else -1
                if result_shape[left] > result_shape[right]:
                    return 1
        return 0

    # An insertion sort, because the comparison is not transitive: another algorithm would give another order.
    order = list(range(len(result_shape)))[::-1]
    for start in range(1, len(order)):
        moving = start
        for other in range(start - 1, -1, -1):
            comparison = comes_after(order[other], order[moving])
            if comparison > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif comparison < 0:
                break
    slowest_first = order[::-1]
    return tuple(slowest_first), tuple([slowest_first.index(dim) for dim in range(len(order))])


def _in_memory_order(result: Array, slowest_first: tuple[int, ...], places: tuple[int, ...]) -> Array:
    transposed = result.transpose(slowest_first)
    # The reshapes give dimensions of size 1 the strides of a contiguous array.
    dense: Array = contiguous_array(transposed).reshape(-1).reshape(transposed.shape)
    return dense.transpose(places)


# Accumulation


def _added_to_slices(view: Array, advanced: Advanced, values: Any) -> bool:
    """Add values at the positions of one vector; whether it was done."""
    found: Array | None = None
    dim = 0
    for number, entry in enumerate(advanced):
        if entry is not None:
            if found is not None or entry.ndim != 1:
                return False
            found, dim = entry, number
    if found is None:
        return False
    shape = view.shape
    if not is_of_host(type(view)):  # nobody waits to see whether positions of a device are counted from the end
        _check_arrays(shape, advanced)
        found = np.where(found < 0, found + shape[dim], found)
    selection = (*shape[:dim], found.size, *shape[dim + 1 :])
    added = _broadcast_values(values, view, selection)
    if add_slices(view, dim, found, added):
        return True
    if not is_of_host(type(view)) or not (found < 0).any():
        return False
    return bool(add_slices(view, dim, np.where(found < 0, found + shape[dim], found), added))


def _accumulate(view: Array, advanced: Advanced, values: Array) -> None:
    """Add `values`, already of the selection's shape; positions are in range.

    `np.add.at` is fast for one index array on a 1-d array only, so the selection is seen as rows: one row for each
    element of the index arrays, as long as the untouched dimensions together.
    """
    if not values.size:
        return
    narrow_float = view.dtype.itemsize == 2 and view.dtype.kind in "fV"
    if values.size <= SMALL and not narrow_float:
        np.add.at(view, _numpy_key(advanced), values)
        return
    indexed = [dim for dim, entry in enumerate(advanced) if entry is not None]
    front, untouched = _result_dims(advanced)
    table = view.transpose(indexed + untouched)
    index_ndim = values.ndim - len(untouched)
    values = values.transpose(
        [*range(front, front + index_ndim), *range(front), *range(front + index_ndim, values.ndim)]
    )
    row_shape = tuple(view.shape[dim] for dim in untouched)
    rows = _row_numbers(view.shape, advanced, indexed)
    _add_rows(table, table.shape[: len(indexed)], rows, values.reshape(rows.size, *row_shape), narrow_float)


def _row_numbers(shape: Shape, advanced: Advanced, indexed: list[int]) -> Array:
    """The index arrays as one flat array of row numbers of a table whose rows are the untouched dimensions."""
    rows: Array | int = 0
    for dim in indexed:
        entry, size = advanced[dim], shape[dim]
        assert entry is not None
        rows = rows * size + np.where(entry < 0, entry + size, entry)
    flat: Array = as_array(rows).reshape(-1)
    return flat


def _add_rows(table: Array, table_shape: Shape, rows: Array, values: Array, narrow_float: bool) -> None:
    """table[rows] += values, repeated rows included; `rows` numbers the leading dimensions `table_shape` of `table`."""
    length = values[0].size
    many = values.size >= LARGE and table.flags.c_contiguous
    if many and add_slices(table.reshape(-1, length), 0, rows, values.reshape(-1, length)):
        return
    sum_type = FLOAT32 if narrow_float else table.dtype
    if length < _LONG_ROW or type(table) is not np.ndarray:  # a device adds all elements at once, whatever their rows
        if table.flags.c_contiguous and not narrow_float:
            elements = rows if length == 1 else (rows[:, None] * length + np.arange(length, like=rows)).reshape(-1)
            np.add.at(table.reshape(-1), elements, values.reshape(-1))
            return
        table_rows = math.prod(table_shape)
        used: Array = np.arange(table_rows, like=rows)
        if table_rows > rows.size:
            used, rows = np.unique(rows, return_inverse=True)
        sums = np.zeros((used.size, *values.shape[1:]), sum_type, like=rows)
        _add_rows(sums, (used.size,), rows, values.astype(sum_type, copy=False), False)
    else:
        # Sorted, the values of one row are neighbours: a row that occurs once is copied, the others are summed.
        order = rows.argsort(kind="stable")
        ordered = rows[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        ends = np.append(starts[1:], rows.size)
        used = ordered[starts]
        sums = values[order[starts]].astype(sum_type, copy=False)
        several = np.flatnonzero(ends - starts > 1)
        for number, start, end in zip(several.tolist(), starts[several].tolist(), ends[several].tolist(), strict=True):
            values[order[start:end]].sum(axis=0, dtype=sum_type, out=sums[number, ...])
    target = np.unravel_index(used, table_shape)
    table[target] = (table[target] + sums).astype(table.dtype, copy=False)
