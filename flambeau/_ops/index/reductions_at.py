"""Reductions of values into given positions of an array: the part that scatter_reduce and index_reduce share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.backend import is_array
from ..._core.slots import SLOTS

_HALF_SIZE = 2

UFUNCS = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}
"""What combines two numbers in each reduction but the mean."""


def reduce_at(target: Any, key: Any, values: Any, reduce: str, include_self: bool = True) -> None:
    """Reduce `values` into `target[key]`; positions that occur several times receive all their values.

    Without `include_self` the old content of these positions does not count. 16-bit floats are computed in float32.
    """
    if target.dtype.itemsize == _HALF_SIZE and target.dtype.kind not in "iu":
        wide = target.astype(np.float32)
        reduce_at(wide, key, values.astype(np.float32) if is_array(values) else values, reduce, include_self)
        target[...] = wide
        return
    if not include_self:
        target[key] = neutral(reduce, target.dtype)
    _combine_at(getattr(np, UFUNCS["sum" if reduce == "mean" else reduce]), target, key, values)
    if reduce == "mean":
        counts = np.full(target.shape, int(include_self), np.int64, like=target)
        np.add.at(counts, key, 1)
        np.maximum(counts, 1, out=counts)
        if not include_self:
            counts[counts == 0] = 1
        if target.dtype.kind in "iu":
            np.floor_divide(target, counts, out=target, casting="unsafe")
        else:
            np.true_divide(target, counts, out=target, casting="unsafe")


def _combine_at(ufunc: Any, target: Any, key: Any, values: Any) -> None:
    # `ufunc.at` is quick for one index array on a flat array only.
    if target.flags.c_contiguous and target.ndim > 1 and target.dtype.kind != "b":
        places = np.ravel_multi_index(np.broadcast_arrays(*key), target.shape).reshape(-1)
        flat = np.broadcast_to(values, joint_shape(*(each.shape for each in key))).reshape(-1)
        ufunc.at(target.reshape(-1), places, flat)
    else:
        ufunc.at(target, key, values)


def neutral(reduce: str, array_type: Any) -> Any:
    """What changes nothing in a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    lowest = reduce == "amax"
    if array_type.kind == "b":
        return not lowest
    if array_type.kind in "iu":
        limits = np.iinfo(array_type)
        return limits.min if lowest else limits.max
    return -np.inf if lowest else np.inf


Pick = Callable[[Any], Any]
Combine = Callable[[Any, Any], Any]


def gradient_of_target(
    grad: Any, self: Any, source: Any, result: Any, reduce: str, include_self: bool,
    *, pick: Pick, add: Combine, again: Combine, cleared: Pick,
) -> Any:  # fmt: skip
    """The gradient of the tensor that was reduced into.

    `pick` takes from a tensor what the source's elements met; `add` adds values of the source's shape to a tensor;
    `again` repeats the reduction with other operands; `cleared` sets the positions that were reduced into to zero.
    """
    if reduce == "sum":
        found = grad
    elif reduce == "mean":
        found = grad / _count(grad, source, include_self, add)
    elif reduce == "prod":
        ones_for_zeros = self.masked_fill(self == 0, 1)
        found = grad * again(ones_for_zeros, source) / ones_for_zeros
    else:
        is_result = (self == result).to(grad.dtype)
        met = (source == pick(result)).to(grad.dtype)
        found = is_result * (grad / add(is_result, met))
    return found if include_self else cleared(found)


def gradient_of_source(
    grad: Any, self: Any, source: Any, result: Any, reduce: str, include_self: bool,
    *, pick: Pick, add: Combine, again: Combine, cleared: Pick,
) -> Any:  # fmt: skip
    """The gradient of the values that were reduced; see `gradient_of_target`."""
    if reduce == "sum":
        return pick(grad)
    if reduce == "mean":
        return pick(grad) / pick(_count(grad, source, include_self, add))
    if reduce != "prod":
        is_result = (self == result).to(grad.dtype)
        met = (source == pick(result)).to(grad.dtype)
        return met * pick(grad / add(is_result, met))
    zero = source == 0
    zeros_met = pick(add(SLOTS.zeros_like(self), zero.to(self.dtype)))
    only_zero = zero & (zeros_met == 1)
    # Where a position received one zero, that zero's gradient is the product of all the others.
    others = again(self, source.masked_fill(only_zero, 1))
    return (pick(grad * result) / source.masked_fill(zero, 1)).where(~only_zero, pick(grad * others))


def _count(grad: Any, source: Any, include_self: bool, add: Combine) -> Any:
    """How many values each position is the mean of."""
    none = SLOTS.zeros_like(grad)
    count = add(none + 1 if include_self else none, SLOTS.zeros_like(source) + 1)
    return count.masked_fill(count == 0, 1)
