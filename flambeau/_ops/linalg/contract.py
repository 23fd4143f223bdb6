"""Products made of products: tensordot, multi_dot, matrix_power, kron, cross."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core.arrays.quick import dim_moved, joint_shape
from ..._core.dtype import BOOL, LEGACY_NAMES
from ..._core.modes import Ruled
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import LOWER, RULED, WIDEST, on
from ..._dispatch.axes import Along
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.factory import constant_beside
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from ..pointwise.binary import conj, mul
from ..shape.view import _contiguous_clone, _permute, _unsafe_view, _unsqueeze, reshaped, wrap_dim
from ..tensor.copy import _clone
from .matmul import checked_mm, dot, element_name, matmul

_Product = Callable[[Tensor, Tensor], Tensor]
_checked_mm: _Product = Ruled(RULED["mm"], checked_mm)
_matmul: _Product = Ruled(RULED["matmul"], matmul)

# ----- tensordot ----------------------------------------------------------------------------------------------------


def _dim_lists(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.item() if dims._array.ndim == 0 or dims._array.size == 1 else dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    if isinstance(dims, (tuple, list)) and len(dims) < 2:
        raise ValueError(f"tensordot: not enough values to unpack (expected 2, got {len(dims)}): dims={dims}")
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]]")
    for number, each in enumerate(dims, 3):
        if not isinstance(each, (tuple, list)):
            name = "dims_self" if number == 3 else "dims_other"
            raise TypeError(
                f"tensordot(): argument '{name}' (position {number}) must be tuple of ints, not {type(each).__name__}"
            )
    return list(dims[0]), list(dims[1])


@public(method=False, autocast=on(cuda=WIDEST))
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The product of two tensors summed over pairs of dimensions: the last and first `dims`, or two lists of them."""
    first, second = _dim_lists(a, b, dims)
    if len(first) != len(second):
        raise RuntimeError(f"both dimension lists should have same length, but they are {first} and {second}")
    if a._kind.dtype is not b._kind.dtype:
        raise RuntimeError(f"both inputs should have same dtype, but they are {a.dtype} and {b.dtype}")
    first = [wrap_dim(each, a._array.ndim) for each in first]
    second = [wrap_dim(each, b._array.ndim) for each in second]
    left = a
    right = b
    for one, two in zip(first, second, strict=True):
        sizes = left._array.shape[one], right._array.shape[two]
        if sizes[0] == sizes[1]:
            continue
        if sizes[1] == 1:  # a dimension of size 1 meets every element of the other: their sum
            left = left.sum(one, keepdim=True, dtype=a.dtype)
        elif sizes[0] == 1:
            right = right.sum(two, keepdim=True, dtype=b.dtype)
        else:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {sizes[0]} in dim {one} and second has size "
                f"{sizes[1]} in dim {two}"
            )
    result = _contracted(left, right, first, second)
    return store_exactly(result, out, (a, b))


def _contracted(left: Tensor, right: Tensor, first: list[int], second: list[int]) -> Tensor:
    free_left = [each for each in range(left._array.ndim) if each not in first]
    free_right = [each for each in range(right._array.ndim) if each not in second]
    shape = tuple([left._array.shape[i] for i in free_left] + [right._array.shape[i] for i in free_right])
    summed = math.prod([left._array.shape[i] for i in first])
    rows = math.prod([left._array.shape[i] for i in free_left])
    columns = math.prod([right._array.shape[i] for i in free_right])
    one = _permute(left, tuple(free_left + first))
    two = _permute(right, tuple(second + free_right))
    if rows == columns == 1:
        return reshaped(dot(reshaped(one, (summed,)), reshaped(two, (summed,))), shape)
    return reshaped(_checked_mm(reshaped(one, (rows, summed)), reshaped(two, (summed, columns))), shape)


# ----- chains -------------------------------------------------------------------------------------------------------


@public("linalg.multi_dot", function=False, method=False, out=True, autocast=on(cuda=LOWER))
def multi_dot(tensors: list[Tensor]) -> Tensor:
    """The product of several matrices, multiplied in the order that takes the fewest operations."""
    matrices: list[Any] = list(tensors)
    count = len(matrices)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    shape: list[int] = []
    for name, place in (("first", 0), ("last", -1)):
        ndim = matrices[place]._array.ndim
        if ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {name} tensor must be 1D or 2D but got {ndim}D")
        if ndim == 1:
            matrices[place] = _unsqueeze(matrices[place], 0 if place == 0 else 1)
        else:
            shape.append(matrices[place]._array.shape[0 if place == 0 else 1])
    for number in range(count):
        each = matrices[number]
        if each._array.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {number} must be 2D but got {each._array.ndim}D")
        if each._kind.dtype is not matrices[0]._kind.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {element_name(matrices[0])} and "
                f"tensor {number} {element_name(each)}"
            )
    for number, (left, right) in enumerate(pairwise(matrices)):
        if left._array.shape[1] != right._array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {number} and {number + 1} with shapes {list(left._array.shape)} and "
                f"{list(right._array.shape)} cannot be multiplied"
            )
    sizes = matrices[0]._array.shape[0], *[each._array.shape[1] for each in matrices]
    return reshaped(_multiplied(matrices, _best_splits(sizes), 0, count - 1), tuple(shape))


@functools.lru_cache(64)
def _best_splits(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """For each part of a chain of matrices where to split it so that the number of multiplications is smallest.

    `sizes` are the rows of the first matrix and the columns of all.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            # Equal costs: of three matrices the first two are multiplied first, as in PyTorch.
            best = min(options, key=lambda k: (options[k], -k if count == 3 else k))
            cost[i, j], split[i, j] = options[best], best
    return split


def _multiplied(matrices: list[Any], split: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return matrices[first]
    middle = split[first, last]
    return _checked_mm(_multiplied(matrices, split, first, middle), _multiplied(matrices, split, middle + 1, last))


@public(method=False, autocast=on(cuda=LOWER))
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices. `linalg.multi_dot` is the newer name."""
    warn_user_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release: use torch.linalg.multi_dot, "
        "which takes a list of matrices."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for each in matrices:
        if each._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {each._array.ndim}, expected 2 instead.")
    result: Tensor = _clone(matrices[0], None) if len(matrices) == 1 else multi_dot(list(matrices))
    if out is None:
        return result
    from ..._dispatch.changes.out import store

    return store(result, out)


@public("linalg.matrix_power", out=write_out)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power of a square matrix, or of each one in a batch; negative powers are those of the inverse."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{shape[-2]} by {shape[-1]} matrices"
        )
    base = input
    if n == 0:
        identity = constant_beside(np.eye(shape[-1], dtype=input._array.dtype), input)
        return _contiguous_clone(base).copy_(identity.expand(shape))
    if n < 0:
        base, n = base.inverse(), -n
    if n == 1:
        return base if base is not input else _clone(base, None)
    if n == 3:
        return _matmul(_matmul(base, base), base)
    power: Any = None
    result: Tensor | None = None
    while n:
        power = base if power is None else _matmul(power, power)
        if n & 1:
            result = power if result is None else _matmul(result, power)
        n >>= 1
    assert result is not None, "n is positive here"
    return result


# ----- kron and cross -----------------------------------------------------------------------------------------------


@public(out=write_out)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: a copy of `other` for each element of `input`, times this element."""
    ndim = max(input._array.ndim, other._array.ndim)
    one = (1,) * (ndim - input._array.ndim) + input._array.shape
    two = (1,) * (ndim - other._array.ndim) + other._array.shape
    left = tuple(size for each in one for size in (each, 1))
    right = tuple(size for each in two for size in (1, each))
    shape = tuple(a * b for a, b in zip(one, two, strict=True))
    parts = mul(_unsafe_view(_dense(input), left), _unsafe_view(_dense(other), right))
    return _unsafe_view(parts, shape)


def _dense(tensor: Any) -> Any:
    return tensor.contiguous()


@primitive(
    "LinalgCrossBackward0",
    axes=Along("dim"),
    self=lambda grad, other, dim: conj(other).cross(grad, dim),
    other=lambda grad, self, dim: grad.cross(conj(self), dim),
)
def _cross(self: Array, other: Array, dim: int) -> Array:
    left, right = np.broadcast_arrays(self, other)
    a, b = dim_moved(left, dim, 0), dim_moved(right, dim, 0)
    result = np.empty(left.shape, left.dtype, like=self)
    parts = dim_moved(result, dim, 0)
    for place in range(3):
        one, two = (place + 1) % 3, (place + 2) % 3
        parts[place] = a[one] * b[two] - a[two] * b[one]  # in half precision too every step is rounded, as in PyTorch
    return result


@public("linalg.cross", function=False, method=False, out=True)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `dim`; other dimensions broadcast."""
    if input._array.ndim != other._array.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions. Got {input._array.ndim} and "
            f"{other._array.ndim}"
        )
    place = wrap_dim(dim, input._array.ndim)
    sizes = [each._array.shape[place] if each._array.ndim else 1 for each in (input, other)]
    if sizes != [3, 3]:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    try:
        joint_shape(input._array.shape, other._array.shape)
    except ValueError:
        raise shape_error("linalg.cross", input, other) from None
    if input._kind.dtype is not other._kind.dtype:
        if input._kind.dtype.category == BOOL:
            raise NotImplementedError("\"cross\" not implemented for 'Bool'")
        raise RuntimeError(f"expected scalar type {LEGACY_NAMES[input.dtype]} but found {LEGACY_NAMES[other.dtype]}")
    return _cross(input, other, place)


@public(out=True, autocast=on(cuda=WIDEST))
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along `dim`; without it along the first dimension of size 3."""
    if dim is None:
        warn_user_once(
            "Using torch.cross without specifying the dim arg is deprecated. Please give dim: torch.linalg.cross takes "
            "the last dimension where none is given."
        )
        shape = input._array.shape
        if 3 not in shape:
            raise RuntimeError(f"no dimension of size 3 in input: its shape is {list(shape)}")
        dim = shape.index(3)
    return linalg_cross(input, other, dim=dim)
