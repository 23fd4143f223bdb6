"""Choices by condition: where, masked_fill, masked_select, masked_scatter, nonzero, isin."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ..._backends.arrays import contiguous, fill_where
from ..._core.arrays.quick import broadcast, joint_shape
from ..._core.backend import LARGE, as_array, read, undispatched
from ..._core.device import CPU
from ..._core.dtype import C_NAMES, COMPLEX, INTEGER, LEGACY_NAMES, bool_, int64, uint8
from ..._core.geometry.layout import arranged
from ..._core.kind import kind_of
from ..._core.modes import THREAD
from ..._core.process.caller import warn_user_once
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.abstract.meta import shape_in_elements
from ..._dispatch.arguments.promotion import Operand, is_number, result_type_of
from ..._dispatch.arguments.scalar import check_value, element, fitting
from ..._dispatch.axes import ELEMENTS_OF_FIRST
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.compiled_body import pointwise_like_last
from ..._dispatch.dispatch import Array, primitive, several
from ..._dispatch.factory import constant_beside
from ..._dispatch.one_by_one import one_by_one
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..linalg.merged_nodes import runs_as_one
from .copy_then_write import change, publish_change, writing

_CPU_BOOL, _CPU_INT64 = kind_of(bool_, CPU), kind_of(int64, CPU)
_choose = undispatched(np.where)
_MASK_NAMES = C_NAMES | {"int16": "short"}


# ----- where --------------------------------------------------------------------------------------------------------


def _where_self(grad: Tensor, condition: Tensor) -> Tensor:
    return where(condition, grad, 0)


def _where_other(grad: Tensor, condition: Tensor) -> Tensor:
    return where(condition, 0, grad)


@pointwise_like_last
def _first_where(first: Array, second: Array, condition: Array) -> Array:
    return np.where(condition, first, second)


@pointwise_like_last
def _second_where(first: Array, second: Array, condition: Array) -> Array:
    return np.where(condition, second, first)


@primitive("WhereBackward0", axes=ELEMENTS_OF_FIRST, self=_where_self, other=_where_other)
def _where(condition: Array, self: Array, other: Array, dtype: Any) -> Array:
    first, second = self.astype(dtype.numpy, copy=False), other.astype(dtype.numpy, copy=False)
    # The size of the first array decides whether a kernel is generated.
    if first.size < second.size:
        chosen = _second_where(second, first, _at_full_size(condition, second, first))
    else:
        chosen = _first_where(first, second, _at_full_size(condition, first, second))
    return arranged(chosen, condition, self, other)


def _at_full_size(condition: Array, first: Array, second: Array) -> Array:
    """`condition` in the shape of `first` where `second` is one element: kernels then read straight on."""
    if second.size != 1 or type(condition) is not np.ndarray or first.size < LARGE or condition.ndim > first.ndim:
        return condition
    if condition.shape == first.shape or joint_shape(condition.shape, first.shape) != first.shape:
        return condition
    return contiguous(np.broadcast_to(condition, first.shape))


def _where_operand(value: Any, source: Tensor, common: Any, name: str, position: int) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not is_number(value):
        raise TypeError(
            f"where() received an invalid combination of arguments: '{name}' (position {position}) must be a Tensor "
            f"or a number, not {type(value).__name__}"
        )
    return constant_beside(as_array(element(value, common)).astype(common.numpy), source)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor: ...
@public(method=False, out=True, also={"self": "input"})
def where(condition: Tensor, input: Operand = None, other: Operand = None) -> Any:
    """`input` where `condition` holds, else `other`; with a condition alone the positions where it holds."""
    if (
        type(condition) in PLAIN_TYPES
        and type(input) in PLAIN_TYPES
        and type(other) in PLAIN_TYPES
        and input._kind is other._kind
        and condition._kind is _CPU_BOOL
        and input._kind.is_cpu
        and not input._kind.indirect
        and input._kind in (modes := THREAD.modes).direct
        and not (modes.grad and (input.requires_grad or other.requires_grad))
        and condition._array.shape == input._array.shape == other._array.shape
        and condition._array.flags.c_contiguous
        and input._array.flags.c_contiguous
    ):  # the short way
        counter: Any = None if modes.inference else [0, None]
        if input._array.size < LARGE:  # row-major, as two of the three are
            chosen = _choose(condition._array, input._array, other._array)
        else:
            chosen = _first_where(input._array, other._array, condition._array)
        return Tensor._from_parts((chosen, input._kind, counter))
    if isinstance(condition, Tensor) and condition._kind.dtype is uint8:
        warn_user_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch: use a boolean condition."
        )
    if not isinstance(condition, Tensor):
        raise TypeError(
            "where() received an invalid combination of arguments: 'condition' must be Tensor, not "
            f"{type(condition).__name__}"
        )
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError(
            "where() received an invalid combination of arguments: give both input and other, or neither of them"
        )
    kind = condition._kind.dtype
    if kind is uint8:
        condition = condition.to(bool_)
    elif kind is not bool_:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {LEGACY_NAMES[kind]}"
        )
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input._kind is other._kind:
        common = input._kind.dtype
    else:
        common = result_type_of(input, other)
    first = _where_operand(input, condition, common, "input", 2)
    second = _where_operand(other, condition, common, "other", 3)
    try:
        return _where(condition, first, second, common)
    except ValueError:
        raise _where_shape_error(condition, first, second) from None


def _where_shape_error(condition: Tensor, first: Tensor, second: Tensor) -> Exception:
    for left, right in ((first, second), (condition, first), (condition, second)):
        pairs = zip(reversed(left._array.shape), reversed(right._array.shape), strict=False)
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            return shape_error("where", left, right)
    return RuntimeError("where(): the shapes do not broadcast")


@public(function=False, name="where")
def _where_method(input: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """The tensor where `condition` holds, else `other`."""
    return where(condition, input, other)


# ----- masked_fill --------------------------------------------------------------------------------------------------


def _fill(array: Array, mask: Array, value: Array) -> None:
    if type(mask) is np.ndarray and 8 * mask.size <= array.size and not mask.any():
        return  # a mask of few elements, as for slices of norm zero: most often there are none
    if array.size >= LARGE and fill_where(array, mask, value):
        return
    np.copyto(array, value, where=mask)


@writing("MaskedFillBackward0", axes=ELEMENTS_OF_FIRST, self=lambda grad, mask: grad.masked_fill(mask, 0))
def _masked_fill_number(self: Array, mask: Array, value: Any) -> None:
    _fill(self, mask, as_array(value).astype(self.dtype))


@writing(
    "MaskedFillBackward1",
    axes=ELEMENTS_OF_FIRST,
    self=lambda grad, mask: grad.masked_fill(mask, 0),
    value=lambda grad, mask: where(mask, grad, 0).sum(),
)
def _masked_fill_tensor(self: Array, mask: Array, value: Array) -> None:
    _fill(self, mask, value.astype(self.dtype))


def _masked_fill_call(input: Tensor, mask: Tensor, value: Any) -> tuple[Any, ...]:
    if not isinstance(mask, Tensor):
        raise TypeError(f"masked_fill(): argument 'mask' (position 2) must be Tensor, not {type(mask).__name__}")
    if mask._kind.dtype is not bool_:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{_MASK_NAMES.get(mask.dtype.name, mask.dtype.name)}"
        )
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        check_value(value, input._kind.dtype)
        return _masked_fill_tensor, mask, value
    return _masked_fill_number, mask, fitting(value, input._kind.dtype)


def _same_shape(input: Tensor, mask: Tensor) -> Tensor:
    """`input` broadcast with the mask."""
    if input._array.shape == mask._array.shape:
        return input
    try:
        shape = joint_shape(input._array.shape, mask._array.shape)
    except ValueError:
        raise shape_error("masked_fill", mask, input) from None
    return input if shape == input._array.shape else input.expand(shape)


def _check_mask_fits(input: Tensor, mask: Tensor) -> None:
    shape = _same_shape(input, mask)._array.shape
    if shape != input._array.shape:
        raise RuntimeError(
            f"output with shape {list(input._array.shape)} doesn't match the broadcast shape {list(shape)}: the mask "
            "is larger than the tensor that is written to"
        )


def _mask_of_places(input: Tensor, mask: Tensor) -> Tensor:
    """`mask`, true for all elements at one memory location where it is true for one of them.

    An interpreter sees the result made apart from an expanded tensor, and then stored: no element may undo another.
    """
    steps = zip(input._array.strides, input._array.shape, strict=True)
    shared = [dim for dim, (step, size) in enumerate(steps) if step == 0 and size > 1]
    return mask.expand(input._array.shape).any(shared, keepdim=True) if shared else mask


@public()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `input` with `value` where `mask` holds."""
    op, mask, value = _masked_fill_call(input, mask, value)
    filled: Tensor = op(_same_shape(input, mask), mask, value)
    return filled


@public()
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place form of `masked_fill`."""
    op, mask, value = _masked_fill_call(input, mask, value)
    _check_mask_fits(input, mask)
    if 0 in input._array.strides:
        mask = _mask_of_places(input, mask)
    return change(op, "masked_fill", input, mask, value)


# ----- masked_select and masked_scatter -----------------------------------------------------------------------------


def _masked_select_gradient(grad: Tensor, self_sym_sizes: tuple[int, ...], mask: Tensor) -> Tensor:
    shape = joint_shape(self_sym_sizes, mask._array.shape)
    return grad.new_zeros(shape).masked_scatter(mask, grad)


@primitive("MaskedSelectBackward0", self=_masked_select_gradient, shape=shape_in_elements("masked_select"))
def _masked_select(self: Array, mask: Array) -> Array:
    shape = joint_shape(self.shape, mask.shape)
    return broadcast(self, shape)[broadcast(mask, shape)].reshape(-1)


@public(out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of `input` where `mask` holds, as a vector."""
    if mask._kind.dtype is not bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, but got {mask.dtype}")
    _same_shape(input, mask)
    return _masked_select(input, mask)


def _masked_scatter_source(grad: Tensor, mask: Tensor, source_sym_sizes: tuple[int, ...]) -> Tensor:
    selected = grad.masked_select(mask)
    missing = math.prod(source_sym_sizes) - selected._array.size
    if missing:
        from ..shape.join import cat

        selected = cat([selected, grad.new_zeros(missing)])
    return selected.reshape(source_sym_sizes)


_count, _place = undispatched(np.count_nonzero), undispatched(np.place)


@writing(
    "MaskedScatterBackward0",
    self=lambda grad, mask: grad.masked_fill(mask, 0),
    source=_masked_scatter_source,
    shape=lambda self, mask, source: np.empty_like(self),
)
def _masked_scatter(self: Array, mask: Array, source: Array) -> None:
    chosen = mask if mask.shape == self.shape else broadcast(mask, self.shape)
    if type(self) is np.ndarray and self.size <= source.size and self.size < LARGE:
        _place(self, chosen, source)  # of what there is more of than needed it takes the first
        return
    count = int(read(_count(chosen) if type(chosen) is np.ndarray else np.count_nonzero(chosen)))
    if source.size < count:
        raise RuntimeError(
            f"Number of elements of source < number of ones in mask: {source.size} elements for {count} positions"
        )
    self[chosen] = source.reshape(-1)[:count]


def _masked_scatter_arguments(input: Tensor, mask: Tensor, source: Tensor) -> tuple[Any, ...]:
    if mask._kind.dtype is not bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {LEGACY_NAMES[mask.dtype]}"
        )
    if source._kind.dtype is not input._kind.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{LEGACY_NAMES[input.dtype]} and {LEGACY_NAMES[source.dtype]}"
        )
    return mask, source


def _masked_scatter_in_place(input: Tensor, mask: Tensor, source: Tensor) -> tuple[Any, ...]:
    arguments = _masked_scatter_arguments(input, mask, source)
    _check_mask_fits(input, mask)
    return arguments


@public()
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` with successive elements of `source` where `mask` holds."""
    mask, source = _masked_scatter_arguments(input, mask, source)
    return _masked_scatter(_same_shape(input, mask), mask, source)


publish_change(_masked_scatter, "masked_scatter", _masked_scatter_in_place)


# ----- positions ----------------------------------------------------------------------------------------------------


@primitive(None, shape=shape_in_elements("nonzero"))
def _nonzero(self: Array) -> Array:
    if self.ndim == 0:
        return np.empty((int(bool(read(self))), 0), np.int64, like=self)
    return np.array(self.nonzero(), np.int64, like=self).T  # columns are contiguous, as in PyTorch


def _store_positions(result: Any, out: Any, operands: tuple[Any, ...]) -> Any:
    if not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if isinstance(result, tuple):
        raise TypeError("nonzero(): 'out' and as_tuple=True exclude each other")
    if out._kind.dtype is result._kind.dtype:
        return write_out(result, out, operands)
    return store_exactly(result, out, operands)


@public(out=_store_positions)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: one row each, or a tuple of one vector for each dimension."""
    kind = input._kind
    is_short = as_tuple and kind.is_cpu and kind.dtype.category <= INTEGER and runs_as_one(kind)
    if is_short and type(input) in PLAIN_TYPES and input._array.ndim:
        counter: Any = None if THREAD.modes.inference else [0, None]
        columns = np.array(input._array.nonzero(), np.int64)  # one memory for all, as below
        return tuple([Tensor._from_parts((each, _CPU_INT64, counter)) for each in columns])
    found: Any = _nonzero(input)
    if not as_tuple:
        return found
    if input._array.ndim == 0:
        return (found.new_zeros(found._array.shape[0]),)
    return tuple([column.detach() for column in found.unbind(1)])


@primitive(None, shape=lambda self, size, fill_value: np.empty_like(self, np.int64, shape=(size, self.ndim)))
def _nonzero_static(self: Array, size: int, fill_value: int) -> Array:
    found = _nonzero.kernel(self)
    result = np.full((size, found.shape[1]), fill_value, np.int64, like=self)
    result[: len(found)] = found[:size]
    return result


@public(out=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` positions of elements that are not zero; missing ones are filled with `fill_value`."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    return _nonzero_static(input, size, fill_value)


@public()
@one_by_one("input")
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, one row each."""
    return _nonzero(input)


@primitive(None)
def _isin(elements: Array, test_elements: Array, invert: bool) -> Array:
    if elements.dtype.itemsize == 2 and elements.dtype.kind not in "iu":
        elements, test_elements = elements.astype(np.float32), test_elements.astype(np.float32)
    tests = test_elements.reshape(-1)
    if type(elements) is np.ndarray and elements.size * tests.size <= _FEW_COMPARISONS:
        found = (elements[..., None] == tests).any(-1)
        return ~found if invert else found
    return np.isin(elements, tests, invert=invert)


_FEW_COMPARISONS = 4096
"""So many are made one by one, sooner than NumPy has decided how to sort or count."""


@public(method=False, out=store_exactly, also={"element": "elements", "test_element": "test_elements"})
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """For each of `elements` whether it is one of `test_elements`."""
    source = elements if isinstance(elements, Tensor) else test_elements
    if not isinstance(source, Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments: elements or test_elements must be a Tensor, not "
            f"{type(elements).__name__} and {type(test_elements).__name__}"
        )
    common = result_type_of(elements, test_elements)
    if any(
        each is True or each is False or getattr(each, "dtype", None) is bool_ for each in (elements, test_elements)
    ):
        raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    if common.category == COMPLEX:
        raise RuntimeError(f"Unsupported input type encountered for isin(): {LEGACY_NAMES[common]}")
    operands = [
        each if isinstance(each, Tensor) else constant_beside(np.asarray(each), source)
        for each in (elements, test_elements)
    ]
    first, second = (each.to(common) for each in operands)
    return _isin(first, second, bool(invert))


@several(None)
def _unravelled(self: Array, sizes: tuple[int, ...]) -> tuple[Array, ...]:
    parts = []
    rest = self.astype(np.int64)
    for size in reversed(sizes):
        parts.append(np.remainder(rest, size))
        rest = rest // size
    together = np.stack(parts[::-1], -1) if parts else np.empty((*rest.shape, 0), like=self)
    return tuple([together[..., place] for place in range(len(sizes))])


@public(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Positions in a flat tensor as positions along each dimension of `shape`."""
    if not isinstance(indices, Tensor):
        raise TypeError(
            f"unravel_index(): argument 'indices' (position 1) must be Tensor, not {type(indices).__name__}"
        )
    if indices._kind.dtype.category != INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(each, int) for each in sizes):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {shape!r}")
    sizes = tuple(sizes)
    if max(sizes, default=0) >= 2**63:
        raise ValueError(f"Overflow when unpacking long long: {sizes}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    return _unravelled(indices, sizes)
