"""Matrix products by oneDNN's matmul primitive."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...._core.arrays.quick import joint_shape
from ..memory.workspace import DIRECT, Workspace
from .calls import run
from .constants import BF16, BIAS, DST, F16, F32, MAX_DIMS, S8, S32, SRC, U8, WEIGHTS
from .library import Handle, Unsupported, get
from .memory import Array, Shape, address, data_type, dense_strides, descriptor, element_strides, new_array
from .primitives import Argument, PackedWeights, Primitive, cached, described


class _Plan(NamedTuple):
    """How to multiply: by a primitive, or first a copy of some operands, whose strides do not do."""

    primitive: Primitive | None
    shape: Shape
    dtype: Any
    copied: tuple[bool, bool, bool]


def matmul(
    a: Array, b: Array, bias: Array | None = None, workspace: Workspace = DIRECT, result: Array | None = None
) -> Array:
    """The product of matrices (..., m, k) and (..., k, n), plus `bias`, which is broadcast to the result.

    Leading dimensions are broadcast. Floats give their own dtype; int8 or uint8 times int8 gives the exact int32.
    It is written to `result`, or to a new array.
    """
    added = None if bias is None else (bias.shape, bias.strides, bias.dtype)
    plan = _plan(a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, added)
    arrays = [a, b] if bias is None else [a, b, bias]
    if plan.primitive is None or not all(each.flags.aligned for each in arrays):
        found = _with_copies(plan, a, b, bias)
        if result is None:
            return found
        np.copyto(result, found)
        return result
    if result is None:
        result = new_array(plan.shape, plan.dtype, workspace=workspace)
    run(plan.primitive, [*arrays, result], workspace)
    return result


class Multiplier:
    """Products of matrices of one shape with the same right one, which is brought into the best layout once."""

    def __init__(self, rows: int, right: Array) -> None:
        self._primitive = _with_packed(rows, right.shape, right.strides, right.dtype)
        self._right = right
        self._packed = PackedWeights()

    def __call__(self, left: Array, out: Array) -> None:
        """Write the product of `left` to `out`; both have no gaps."""
        self._primitive.run([address(left), address(self._right), address(out)], self._packed, 1)


@cached
def _with_packed(rows: int, shape: Shape, strides: Shape, dtype: Any) -> Primitive:
    kind, given = data_type(dtype), _matrices(shape, strides, dtype.itemsize, whole=True)
    if given is None or kind != F32:
        raise Unsupported("oneDNN is asked for products of matrices of float32 without repetitions")
    left, product = (rows, shape[0]), (rows, shape[1])
    source, result = (descriptor(each, dense_strides(each), kind) for each in (left, product))
    made = described("matmul", source, descriptor(shape, None, kind), None, result)
    arguments = [Argument(SRC, source), Argument(WEIGHTS, _layout(given, 2, kind)), Argument(DST, result, True)]
    return Primitive(made, arguments)


def _with_copies(plan: _Plan, a: Array, b: Array, bias: Array | None) -> Array:
    """The product of copies: of the operands that the plan names, or of all if the elements are not aligned.

    The result comes first: where there is no room for it, an operand that repeats itself is not written out in vain.
    """
    result = new_array(plan.shape, plan.dtype)
    copied = plan.copied if any(plan.copied) else (True, True, True)
    a, b = (np.array(each, order="C") if copy else each for each, copy in zip((a, b), copied, strict=False))
    return matmul(a, b, bias if bias is None or not copied[2] else np.array(bias, order="C"), result=result)


@cached
def _plan(
    a_shape: Shape,
    a_strides: Shape,
    a_dtype: Any,
    b_shape: Shape,
    b_strides: Shape,
    b_dtype: Any,
    added: tuple[Shape, Shape, Any] | None,
) -> _Plan:
    if len(a_shape) < 2 or len(b_shape) < 2:
        raise Unsupported("oneDNN multiplies matrices, not vectors")
    if a_shape[-1] != b_shape[-2]:
        raise ValueError(f"matrices of shapes {a_shape} and {b_shape} cannot be multiplied")
    if 0 in a_shape or 0 in b_shape:
        raise Unsupported("oneDNN is not asked about empty arrays")
    shape = (*joint_shape(a_shape[:-2], b_shape[:-2]), a_shape[-2], b_shape[-1])
    if len(shape) > MAX_DIMS:
        raise Unsupported(f"oneDNN's arrays have at most {MAX_DIMS} dimensions")
    kind, other, result_kind = _kinds(a_dtype, b_dtype)
    dtype = np.dtype(np.int32) if result_kind == S32 else a_dtype
    left = _matrices(a_shape, a_strides, a_dtype.itemsize, whole=True)
    right = _matrices(b_shape, b_strides, b_dtype.itemsize, whole=True)
    addend = None
    if added is not None:
        if added[2] != dtype or joint_shape(added[0], shape) != shape:
            raise Unsupported(f"oneDNN does not add {added[2]} of shape {added[0]} to {dtype} of shape {shape}")
        addend = _matrices(*added[:2], dtype.itemsize)
    repeated = left is not None and right is not None and _batch(left, right) != shape[:-2]
    copied = (left is None or repeated, right is None, added is not None and addend is None)
    if left is None or right is None or any(copied):
        return _Plan(None, shape, dtype, copied)
    folded = _folded(left) if len(b_shape) == 2 and len(a_shape) > 2 and (added is None or len(added[0]) < 2) else None
    product = shape
    if folded is not None:  # one large product instead of many small ones
        left, product = folded, (*folded[0][:1], shape[-1])
    rank = len(product)
    arguments = [
        Argument(SRC, _layout(left, rank, kind)),
        Argument(WEIGHTS, _layout(right, rank, other)),
        Argument(DST, descriptor(product, dense_strides(product), result_kind), True),
    ]
    if addend is not None:
        arguments.insert(2, Argument(BIAS, _layout(addend, rank, result_kind)))
    bias = arguments[2].descriptor if addend is not None else None
    made = described("matmul", arguments[0].descriptor, arguments[1].descriptor, bias, arguments[-1].descriptor)
    return _Plan(Primitive(made, arguments), shape, dtype, copied)


def _kinds(a: Any, b: Any) -> tuple[int, int, int]:
    """The data types of the operands and of the result."""
    kind, other = data_type(a), data_type(b)
    if kind in (S8, U8) and other == S8:
        if not get().multiplies_bytes_exactly:
            raise Unsupported("oneDNN's products of 8-bit integers are not exact on this processor")
        return kind, other, S32
    if kind != other or kind not in (F32, BF16, F16):
        raise Unsupported(f"oneDNN does not multiply {a} and {b}")
    return kind, other, kind


def _matrices(shape: Shape, strides: Shape, size: int, whole: bool = False) -> tuple[Shape, Shape] | None:
    """The shape and the strides in elements that oneDNN is told, or None if the array must be copied first.

    A repeated dimension becomes one of size 1, for oneDNN broadcasts by itself. But the matrices of a factor (`whole`)
    must have all their elements, row by row or column by column; those of an addend need not.
    """
    fixed = len(shape) - 2 if whole else len(shape)
    sizes = tuple(
        1 if stride == 0 and dim < fixed else length
        for dim, (length, stride) in enumerate(zip(shape, strides, strict=True))
    )
    found = element_strides(sizes, strides, size)
    if found is None or (whole and 1 not in found[-2:] and 1 not in sizes[-2:]):
        return None
    return sizes, found


def _batch(left: tuple[Shape, Shape], right: tuple[Shape, Shape]) -> Shape:
    """The leading sizes of the product as oneDNN sees it: smaller than they should be where both factors repeat."""
    return joint_shape(left[0][:-2], right[0][:-2])


def _folded(layout: tuple[Shape, Shape]) -> tuple[Shape, Shape] | None:
    """The matrices of a batch as one matrix, if their rows are evenly spaced in memory."""
    sizes, strides = layout
    for dim in range(len(sizes) - 2):
        if strides[dim] != strides[dim + 1] * sizes[dim + 1]:
            return None
    return (math.prod(sizes[:-1]), sizes[-1]), strides[-2:]


def _layout(layout: tuple[Shape, Shape], rank: int, kind: int) -> Handle:
    """A descriptor of `rank` dimensions: oneDNN wants as many for the factors as for the product."""
    shape, strides = layout
    more = rank - len(shape)
    outermost = max([size * stride for size, stride in zip(shape, strides, strict=True)], default=1)
    return descriptor((1,) * more + shape, (outermost,) * more + strides, kind)
