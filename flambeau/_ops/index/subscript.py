"""`x[index]` and `x[index] = value`, and `index_put`, their form as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._backends.arrays import fill_where
from ..._core.arrays.abstract import NeedsData
from ..._core.arrays.lazy_signs import content, settle
from ..._core.arrays.narrow import as_type, number_as
from ..._core.backend import LARGE, all_within, as_array, is_array
from ..._core.device import CPU
from ..._core.dtype import FLOAT, INTEGER, LEGACY_NAMES, bool_, dtype, int32, int64, uint8
from ..._core.geometry.layout import contiguous_array
from ..._core.kind import kind_of_array
from ..._core.modes import THREAD, beside_the_ops
from ..._core.node import SavedTensor, save
from ..._core.size import fits_int64
from ..._core.tensor import DIRECT_TYPES, PLAIN_TYPES, Tensor, new_counter
from ..._dispatch.abstract.fake import refuse_shape
from ..._dispatch.abstract.meta import shape_in_elements
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.arguments.scalar import check_value, element, fitting
from ..._dispatch.call.results import any_needs_gradient
from ..._dispatch.call.subscript import short_getitem
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import check_apart, check_no_overlap, check_separate, check_writable
from ..._dispatch.compiled_body import fits_in
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.factory import constant_beside
from ..._dispatch.public.overrides import has_override, run_override
from ..._dispatch.public.protocol import explain
from ..._dispatch.public.registry import export_method, public
from ..shape.named_shapes import _alias
from ..shape.parts import _select, _slice
from ..shape.view import _ALL, _unsqueeze
from .copy_then_write import change, publish_change, warn_if_expanded, writing
from .indexing import (
    SMALL,
    IndexPlan,
    _expand_masks,
    advanced_get,
    advanced_put,
    assign_to_view,
    basic_index,
    plan_index,
)  # fmt: skip
from .masks_without_data import is_mask_without_data, with_positions
from .tensor_indices import basic_part, operator_entries, part_and_entries, runs_operators, stays_mask, stays_tensors

_WHOLE = slice(None)
_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)
_INT_ALONE = {int}

Indices = Sequence[Any]
"""For each dimension a tensor of positions or None."""


# ----- reading ------------------------------------------------------------------------------------------------------


def _general_getitem(self: Tensor, index: Any) -> Tensor:
    if type(self) not in DIRECT_TYPES and has_override((self, index)):
        return run_override(_getitem, (self, index), (self, index), {})
    try:
        if index is None:
            return _unsqueeze(self, 0)
        if type(index) is int and self._array.ndim:
            size = self._array.shape[0]
            if -size <= index < size:
                return _select(self, 0, index if index >= 0 else index + size)
        modes = THREAD.modes
        if modes.is_ordinary and not (modes.grad and any_needs_gradient((self,))):
            picked = _picked(self, index)
            if picked is not None:
                return picked
        return _recorded_getitem(self, index)
    except Exception as error:
        explain(error, "__getitem__", {"self": self, "index": index})
        raise


def _picked(tensor: Tensor, index: Any) -> Tensor | None:
    """What a mask, or tensors of positions for the first dimensions, pick from an array; nothing records the call. So
    do a slice of all and a list of positions.

    None: the index is another, or the array has gaps.
    """
    array = tensor._array
    if type(index) in PLAIN_TYPES:
        given = index._array
        if type(given) is not type(array) or not given.ndim:  # a number gives a window
            return None
        if given.dtype is _BOOL:
            if given.shape == array.shape and not tensor._kind.dataless:
                return _index(tensor, (given,), None)
        elif given.dtype is _INT64 and not index._kind.indirect and type(array) is np.ndarray and array.size:
            if given.ndim > 1 and not given.flags.c_contiguous:
                return None
            if array.flags.c_contiguous:
                return _index(tensor, (given,), None)
            return _index(tensor, [given, *(None,) * (array.ndim - 1)], None)
        return None
    if type(index) is not tuple or not _is_dense(array):
        return None
    if len(index) == 2 and type(index[1]) in (tuple, list) and array.ndim > 1 and index[0] == _WHOLE:
        numbers = index[1]
        if numbers and {*map(type, numbers)} == _INT_ALONE and all(map(fits_int64, numbers)):
            return _index(tensor, [None, np.array(numbers, np.int64), *(None,) * (array.ndim - 2)], None)
        return None
    moves, begins, ended = False, False, False
    for each in index:
        if each is None:  # a new dimension, before all positions or behind them
            ended = ended or begins
            continue
        if ended or type(each) not in PLAIN_TYPES or each._kind.indirect:
            return None
        given = each._array
        in_order = given.ndim < 2 or given.flags.c_contiguous
        if not in_order or type(given) is not np.ndarray or given.dtype is not _INT64:
            return None
        moves, begins = moves or given.ndim > 0, True
    return _index(tensor, tuple([None if each is None else each._array for each in index]), None) if moves else None


def _is_dense(array: Any) -> bool:
    return type(array) is np.ndarray and array.size > 0 and array.flags.c_contiguous


def _grown(array: Any, index: Any) -> Any:
    """`array[index]` where None stands in the index: new dimensions have the strides that `unsqueeze` gives them.

    An IndexError, too, where nothing is left.
    """
    rest = array.ndim
    for item in index:
        if item is not None and item is not ...:
            rest -= 1
    dim = 0
    for item in index if rest >= 0 else ():
        if item is None:
            array = _unsqueeze.kernel(array, dim)
        elif item is ...:
            dim += rest
            continue
        elif item != _WHOLE:
            array = array[(*_ALL[dim], item, ...)]
        if type(item) is not int:
            dim += 1
    if rest < 0 or not array.size:
        raise IndexError
    return array


def _recorded_getitem(tensor: Tensor, index: Any) -> Tensor:
    for each in index if type(index) in (tuple, list) else (index,):
        if is_mask_without_data(each) and each._array.ndim:
            refuse_shape("nonzero", each._kind.device)
            shape_in_elements("nonzero")()
    if basic_index(index, tensor._array.ndim) is not None:
        return _basic_getitem(tensor, index)
    if stays_tensors(index):
        part, entries = part_and_entries(tensor, index)
        return _index(part, entries, None)
    if THREAD.modes.interpreters and runs_operators(tensor, index):
        part, entries = operator_entries(tensor, index)
        if entries:
            return _index(part, entries, _saved(entries) if _followed(tensor) else None)
        return _alias(part) if part is tensor else part
    if _is_mask_to_repeat(index, tensor):
        index = index.nonzero(as_tuple=True)
    if type(index) is tuple and (positions := _positions_alone(index, tensor._array.ndim)) is not None:
        for dim, each in enumerate(index):
            if each is None:
                tensor = _unsqueeze(tensor, dim)
        return _pick(tensor, positions)
    plan = plan_index(index, tensor._array.shape)
    part = basic_part(tensor, plan.basic, type(index) is slice)
    if plan.advanced is not None:
        return _pick(part, _indices_of(index, plan))
    return _alias(part) if part is tensor else part


def _basic_getitem(tensor: Tensor, index: Any) -> Tensor:
    """`tensor[index]` for an index of ints, slices, None and at most one Ellipsis."""
    shape = tensor._array.shape
    items = index if type(index) is tuple else (index,)
    rest = len(shape)
    for item in items:
        if item is not None and item is not ...:
            rest -= 1
    if rest < 0:
        plan_index(index, shape)  # raises
    part: Tensor = tensor
    dim = source = 0
    for item in items:
        if item is None:
            part = _unsqueeze(part, dim)
            dim += 1
        elif item is ...:
            dim += rest
            source += rest
        elif type(item) is int:
            size = shape[source]
            if not -size <= item < size:
                plan_index(index, shape)  # raises
            part = _select(part, dim, item if item >= 0 else item + size)
            source += 1
        else:
            size = shape[source]
            start, stop, step = item.indices(size)
            if start != 0 or step != 1 or stop != size or item is index:
                part = _slice(part, dim, start, max(start, stop), step)
            dim += 1
            source += 1
    return _alias(part) if part is tensor else part


_getitem = short_getitem(basic_index, _grown, _basic_getitem, _picked, _general_getitem)


def _positions_alone(index: tuple[Any, ...], ndim: int) -> list[Tensor | None] | None:
    """The entries of all dimensions for an index of nothing but tensors of positions and None; None: it has others."""
    rest = ndim
    for each in index:
        if each is not None:
            if type(each) not in PLAIN_TYPES or each._kind.indirect or each._kind.dtype is not int64:
                return None
            if not each._array.ndim:
                return None
            rest -= 1
    return [*index, *(None,) * rest] if 0 <= rest < ndim else None


def _is_mask_to_repeat(index: Any, tensor: Tensor) -> bool:
    """Whether an index is one mask whose positions are an op of their own, since what runs now is run again."""
    interpreters = THREAD.modes.interpreters
    if not interpreters or not interpreters[-1].sees_checks or type(index) is not Tensor:
        return False
    shape = index._array.shape
    return index._kind.dtype is bool_ and bool(shape) and tensor._array.shape[: len(shape)] == shape


def _indices_of(index: Any, plan: IndexPlan) -> list[Tensor | None]:
    """The index arrays of `plan` as tensors: those of the user where they are used as they are."""
    assert plan.advanced is not None
    items = index if isinstance(index, (tuple, list)) else (index,)
    return _as_tensors(plan.advanced, [item for item in items if isinstance(item, Tensor)])


def _as_tensors(advanced: tuple[Any, ...], given: Sequence[Tensor]) -> list[Tensor | None]:
    by_array = {id(each._array): each for each in given}
    return [
        None if each is None else by_array[id(each)] if id(each) in by_array else _index_tensor(each)
        for each in advanced
    ]


def _index_tensor(array: Any) -> Tensor:
    return Tensor._from_parts((array, kind_of_array(array.dtype, CPU), new_counter()))


def _saved(indices: Indices) -> list[SavedTensor | None]:
    return [None if each is None else save(each) for each in indices]


def _arrays(indices: Indices) -> list[Any]:
    # A list, as every collection of arrays that a kernel takes: on the meta device they are replaced by readable ones.
    # A wrapper is passed on as it is: `vmap` runs the op in another way, and so does a class of its own.
    if THREAD.modes.interpreters and runs_operators(indices):
        return list(indices)
    return [None if each is None else each if each._is_wrapper else each._array for each in indices]


def _followed(*tensors: Any) -> bool:
    """Whether a derivative may be asked for, backward or forward."""
    modes = THREAD.modes
    return modes.forward_level >= 0 or (modes.grad and any_needs_gradient(tensors))


def _pick(tensor: Tensor, indices: Indices) -> Tensor:
    saved = _saved(indices) if _followed(tensor) else None
    return _index(tensor, _arrays(indices), saved)


def _index_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], indices: Indices) -> Tensor:
    saved = _saved(indices) if _followed(grad) else None
    if THREAD.modes.interpreters and runs_operators(grad, indices):
        return _index_put(grad.new_zeros(self_sym_sizes), list(indices), saved, grad, True)
    return _index_backward(grad, self_sym_sizes, _arrays(indices), saved)


@public("ops.aten.index", function=False, method=False, name="index")
def index_operator(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """`input[indices]`, where None stands for a dimension that is taken whole."""
    return _getitem(input, tuple([slice(None) if each is None else each for each in indices]))


@primitive("IndexBackward0", fuses=False, self=_index_gradient)
def _index(self: Array, advanced: Any, indices: Any) -> Array:
    if type(advanced) is tuple:  # see `_picked`
        first = advanced[0]
        try:
            if len(advanced) > 1:
                return _picked_by_several(self, advanced)
            return self[first] if first.dtype is _BOOL else self.take(first, 0)
        except IndexError:  # which the way below explains
            advanced = [each for each in advanced if each is not None]
    return advanced_get(self, advanced)


def _picked_by_several(array: Array, index: tuple[Array | None, ...]) -> Array:
    """What positions pick, with a dimension of size 1 for each None before or behind them."""
    positions = tuple([each for each in index if each is not None])
    picked = contiguous_array(array[positions]) if len(positions) > 1 else array.take(positions[0], 0)
    added = len(index) - len(positions)
    if not added:
        return picked
    before = next(number for number, each in enumerate(index) if each is not None)
    dims = picked.ndim - array.ndim + len(positions)
    return picked.reshape(*(1,) * before, *picked.shape[:dims], *(1,) * (added - before), *picked.shape[dims:])


@primitive("IndexPutImplBackward0", grad=lambda grad, indices: _pick(grad, indices))
def _index_backward(grad: Array, sizes: tuple[int, ...], advanced: Any, indices: Any) -> Array:
    if type(grad) is np.ndarray and _are_single_places(grad, sizes, advanced):
        result = np.zeros(sizes, grad.dtype)
        np.add.at(result, tuple(advanced), grad)
        return result
    result = np.zeros(sizes, grad.dtype, like=grad)
    advanced_put(result, advanced, grad, accumulate=True)
    return result


def _are_single_places(values: Any, sizes: tuple[int, ...], advanced: Any) -> bool:
    """Whether positions say for each of a few values its place in all dimensions: NumPy adds these up at once."""
    if not 1 < len(sizes) == len(advanced) or not 0 < values.size <= SMALL or values.dtype.itemsize == 2:
        return False
    for each in advanced:
        if type(each) is not np.ndarray or each.shape != values.shape or each.ndim != 1 or each.dtype.kind == "b":
            return False
    return True


# ----- writing ------------------------------------------------------------------------------------------------------


def _number(value: Any, kind: Any) -> tuple[Any, bool]:
    """A Python number as an array of this kind takes it, and whether it does without a further look."""
    if kind.differentiable:
        is_exact = type(value) is int and -_EXACT <= value <= _EXACT
        return (float(value), True) if is_exact else (value, type(value) is float)
    if kind.dtype.category == INTEGER:
        return value, fits_in(value, kind.dtype.numpy)
    return value, type(value) is bool or (type(value) is int and 0 <= value <= 1)


_EXACT = 2**53
"""Up to here a float has all integers."""


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    if type(self) in DIRECT_TYPES:
        modes = THREAD.modes
        kind = self._kind
        if type(value) in PLAIN_TYPES:
            source = value._array if not value._kind.indirect else content(value)
            direct = value._kind.device is kind.device
        else:
            source, direct = _number(value, kind)
        given = (self, value) if type(value) in PLAIN_TYPES else (self,)
        if direct and kind in modes.direct and not (modes.grad and any_needs_gradient(given)):
            key = basic_index(index, self._array.ndim)
            if key is not None:
                _write_basic(self, key, index, source)
                return
            if type(index) in PLAIN_TYPES and _quick_put(self, content(index), source):
                return
    if has_override((self, index, value)):
        run_override(_setitem, (self, index, value), (self, index, value), {})
        return
    try:
        _general_setitem(self, index, value)
    except Exception as error:
        explain(error, "__setitem__", {"self": self, "index": index, "value": value})
        raise


def _quick_put(tensor: Tensor, index: Any, source: Any) -> bool:
    """Do `tensor[index] = source` for one index tensor where NumPy's rules are PyTorch's; say whether it was done."""
    array = tensor._array
    if tensor._kind.indirect:
        return False
    if is_array(source) and source.dtype is not array.dtype:
        return False
    mask = index.dtype is _BOOL and index.ndim and index.shape == array.shape
    if not (mask or (index.dtype is _INT64 and index.ndim and index.size and array.size)):
        return False
    if 0 in array.strides:  # it may be expanded: the general way warns
        return False
    check_writable(tensor)
    if is_array(source) and not (mask and source.size == 1):
        check_apart(array, source)
    if not (mask or type(array) is np.ndarray):  # an array of the host looks itself
        size = array.shape[0]
        all_within(index, -size, size, "indexing")
    try:
        if not (mask and _filled(array, index, source)):
            array[index] = source
    except (IndexError, TypeError, ValueError, NeedsData):
        # the general way says what is wrong, or drops leading dimensions of size 1
        return False
    end_change(tensor)
    return True


def _filled(array: Any, mask: Any, source: Any) -> bool:
    """Write one number into a large array of the host where a mask of its shape holds; whether it was done."""
    if type(array) is not np.ndarray or array.size < LARGE or (is_array(source) and source.size != 1):
        return False
    return bool(fill_where(array, mask, np.asarray(source, array.dtype)))


def _write_basic(tensor: Tensor, key: Any, index: Any, source: Any) -> None:
    array = tensor._array
    check_writable(tensor)
    try:
        part = array[key]
    except IndexError:
        plan_index(index, array.shape)
        raise
    if 0 in part.strides:
        check_no_overlap(Tensor._from_parts((part, tensor._kind, None)))
    if is_array(source) and source.ndim:
        check_apart(part, source, but_same=True)
    assign_to_view(part, source)
    if tensor._kind.indirect:
        settle(part, tensor._kind)
    end_change(tensor)


def _general_setitem(tensor: Tensor, index: Any, value: Any) -> None:
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, complex, np.integer)):
            raise TypeError(
                f"can't assign a {_type_name(value)} to a {tensor._kind.legacy_name}: make a tensor of it first, with "
                "torch.tensor or torch.from_numpy"
            )
        element = _as_element(value, tensor._kind.dtype)
        if _fills_watched(tensor, index, value):
            return
        value = constant_beside(element, tensor)
    if index is False:
        return
    if index is True:
        index = None
    if stays_mask(index) and not _followed(tensor, value):
        part, entries = operator_entries(tensor, index)
        change(_index_put, "index_put", part, entries, None, value.to(tensor._kind.dtype), False)
        return
    if stays_tensors(index):
        many, entries = part_and_entries(tensor, index)
        change(_index_put, "index_put", many, entries, None, value.to(tensor._kind.dtype), False)
        return
    if THREAD.modes.interpreters and runs_operators(tensor, index, value):
        part, entries = operator_entries(tensor, index)
        if entries:
            saved = _saved(entries) if _followed(tensor, value) else None
            change(_index_put, "index_put", part, entries, saved, value, False)
        else:
            _fill_or_copy(part, value)
        return
    mask = _only_mask(index) if value._array.size == 1 else None
    if mask is not None and mask.dtype != np.bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char: .bool()")
    if tensor._kind.dataless:
        index = with_positions(index, value)
    plan = plan_index(index, tensor._array.shape)
    part = basic_part(tensor, plan.basic, False)
    if plan.advanced is None:
        _fill_or_copy(part, value)
        return
    if mask is not None:
        check_value(value, tensor._kind.dtype)
        value = value.to(tensor._kind.dtype)
        warn_if_expanded("masked_fill", part)
    else:
        check_separate(part, value)
    _check_same_dtype(part, plan.advanced, value)
    shape = value._array.shape
    if shape and shape[0] == 1:  # leading dimensions of size 1 do not count
        value = value.reshape(shape[next((dim for dim, size in enumerate(shape) if size != 1), len(shape)) :])
    _put(part, _indices_of(index, plan), value)


def _fills_watched(tensor: Tensor, index: Any, number: Any) -> bool:
    """Fill what an index without tensors means where interpreters only watch; whether it was done.

    As in a call that nobody watches the number stays one, and a device gets no tensor of it.
    """
    interpreters = THREAD.modes.interpreters
    if not interpreters or not all(each.only_watches for each in interpreters) or _followed(tensor):
        return False
    if basic_index(index, tensor._array.ndim) is None or tensor._kind.dataless:
        return False
    part = basic_part(tensor, plan_index(index, tensor._array.shape).basic, False)
    if part._array.shape:
        check_no_overlap(part)
        part.fill_(number)
    return bool(part._array.shape)


def _as_element(value: Any, target: dtype) -> Any:
    """A number, which must fit, as a 0-d array."""
    if type(value) is int and not fits_int64(value):
        raise ValueError(f"Overflow when unpacking long long: {value} has more than 64 bits")
    if target.category == FLOAT and isinstance(value, (int, float)):
        number = as_array(element(float(value), target))
        return number.astype(target.numpy) if target.wide is None else as_type(number, target.numpy)
    return number_as(fitting(value, target), target.numpy)


def _type_name(value: Any) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _fill_or_copy(part: Tensor, value: Tensor) -> None:
    shape, given = part._array.shape, value._array.shape
    check_no_overlap(part)
    if not given and shape:
        part.fill_(value)
        return
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    if given != value._array.shape:
        value = value.reshape(given)
    part.copy_(value if given == shape else value.expand(shape))


def _only_mask(index: Any) -> Any:
    """The only index tensor if it is a mask: one value is then written in whatever dtype it has."""
    items = index if isinstance(index, tuple) else (index,)
    arrays = [
        item._array if isinstance(item, Tensor) else np.asarray(item)
        for item in items
        if item is not ... and item is not None and not isinstance(item, (int, slice, np.integer))
    ]
    only = arrays[0] if len(arrays) == 1 else None
    return only if only is not None and only.ndim > 0 and only.dtype in (np.dtype(bool), np.dtype(np.uint8)) else None


def _check_same_dtype(tensor: Tensor, advanced: tuple[Any, ...], values: Tensor) -> None:
    if values._kind.dtype is not tensor._kind.dtype:
        advanced_put(np.empty_like(tensor._array), advanced, values._array)  # shapes that do not fit come first
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{LEGACY_NAMES[tensor.dtype]} for the destination and {LEGACY_NAMES[values.dtype]} for the source. "
            f"Convert the values with .to({tensor.dtype})"
        )


def _put(target: Tensor, indices: Indices, values: Tensor) -> Tensor:
    recorded = _followed(target, values)
    return change(
        _index_put, "index_put", target, _arrays(indices), _saved(indices) if recorded else None, values, False
    )


def _index_put_self(grad: Tensor, indices: Indices, accumulate: bool) -> Tensor:
    if accumulate:
        return grad
    zero = constant_beside(np.zeros((), grad._array.dtype), grad)
    return _index_put(grad, _arrays(indices), _saved(indices), zero, False)


@writing(
    "IndexPutBackward0",
    keeps_strides=True,
    self=_index_put_self,
    values=lambda grad, indices: _pick(grad, indices),
)
def _index_put(self: Array, advanced: Any, indices: Any, values: Array, accumulate: bool) -> None:
    advanced_put(self, advanced, values, accumulate)


def _index_put_arguments(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> tuple[Any, ...]:
    if type(values) in PLAIN_TYPES and input._kind is values._kind in THREAD.modes.direct:
        positions = _usual_positions(indices, input._array.ndim)
        if positions is not None:
            saved = [*_saved(indices), *positions[len(indices) :]] if _followed(input, values) else None
            return positions, saved, values, bool(accumulate)
    for position, each in enumerate(indices):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
        if each._kind.dtype not in (int64, int32, bool_, uint8):
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors (got {each.dtype} of shape "
                f"{list(each._array.shape)})"
            )
    if not isinstance(values, Tensor):
        raise TypeError(f"index_put(): argument 'values' (position 2) must be Tensor, not {type(values).__name__}")
    if stays_mask(indices) and values._kind.dtype is input._kind.dtype and not _followed(input, values):
        return list(indices), None, values, bool(accumulate)
    if input._kind.dataless:
        indices = with_positions(indices, values)
    if stays_tensors(tuple(indices)):
        return part_and_entries(input, tuple(indices))[1], None, values, bool(accumulate)
    if THREAD.modes.interpreters and runs_operators(input, indices, values):
        return list(indices), _saved(indices) if _followed(input, values) else None, values, bool(accumulate)
    advanced = _advanced_of(indices, input._array.shape)
    one_mask = len(indices) == 1 and indices[0]._kind.dtype in (bool_, uint8)
    if values._array.size == 1 and values._kind is not input._kind and one_mask and not accumulate:
        values = values.to(input._kind.dtype)
    _check_same_dtype(input, advanced, values)
    tensors = _as_tensors(advanced, indices)
    recorded = _followed(input, values)
    return _arrays(tensors), _saved(tensors) if recorded else None, values, bool(accumulate)


def _usual_positions(indices: Any, ndim: int) -> list[Any] | None:
    """An array or None for each dimension, where all indices are ordinary tensors of positions; else None."""
    if type(indices) not in (tuple, list) or not 0 < len(indices) <= ndim:
        return None
    positions: list[Any] = []
    for each in indices:
        if type(each) not in PLAIN_TYPES or each._kind.dtype is not int64 or each._kind.indirect:
            return None
        positions.append(each._array)
    return positions + [None] * (ndim - len(positions))


def _advanced_of(indices: Indices, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index array or None for each dimension of `shape`."""
    entries: list[Any] = []
    consumed = 0
    for each in indices:
        array = content(each) if each._kind.indirect else each._array
        if array.dtype != np.int64:
            beside_the_ops()
        if array.dtype == np.uint8:
            array = array != 0
        mask = array.dtype == np.bool_
        entries.append(array if mask or array.dtype == np.int64 else array.astype(np.int64))
        consumed += array.ndim if mask else 1
    if consumed > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {consumed})")
    entries += [None] * (len(shape) - consumed)
    return _expand_masks(entries, list(shape))


@public(autocast=on(cuda=WIDEST))
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` at the positions that the tensors in `indices` give, or added to them."""
    return _index_put(input, *_index_put_arguments(input, indices, values, accumulate))


publish_change(_index_put, "index_put", _index_put_arguments)


def _operator_arguments(input: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> tuple[Any, ...]:
    """The arguments of `index_put`, where None stands for a whole dimension: the operator allows it, methods do not."""
    if all(each is not None for each in indices):
        return _index_put_arguments(input, indices, values, accumulate)
    if THREAD.modes.interpreters and runs_operators(input, indices, values):
        tensors = list(indices)
    else:
        key = tuple([slice(None) if each is None else each for each in indices])
        plan = plan_index(key, input._array.shape)
        tensors = _indices_of(key, plan) if plan.advanced is not None else []
    return _arrays(tensors), _saved(tensors) if _followed(input, values) else None, values, bool(accumulate)


@public("ops.aten.index_put", function=False, method=False, name="index_put")
def index_put_operator(input: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` at positions, of which None stands for a dimension that is taken whole."""
    return _index_put(input, *_operator_arguments(input, indices, values, accumulate))


@public("ops.aten.index_put_", function=False, method=False, name="index_put_")
def index_put_operator_(input: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` itself, with `values` at such positions."""
    return change(_index_put, "index_put", input, *_operator_arguments(input, indices, values, accumulate))


def _delitem(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


for _function, _name in ((_getitem, "__getitem__"), (_setitem, "__setitem__"), (_delitem, "__delitem__")):
    _function.__name__ = _function.__qualname__ = _name
    _function.__module__ = __name__
export_method(_getitem, "__getitem__")
export_method(_setitem, "__setitem__")
export_method(_delitem, "__delitem__")
