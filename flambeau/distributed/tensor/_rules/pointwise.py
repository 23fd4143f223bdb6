"""Elementwise ops: their operands are cut alike."""

from __future__ import annotations

import numpy as np

from ..placement_types import Shard
from .choice import REPLICATE, SUM, Call, Case, cases

_LINEAR = frozenset(
    [
        "neg",
        "clone",
        "contiguous_clone",
        "to_copy",
        "detach",
        "alias",
        "alias_copy",
        "conjugate",
        "real",
        "imag",
        "zero",
        "copied_like",
    ]
)
"""Of a sum of tensors, these are the sums of what they are of each."""
_SUMS = frozenset(["add", "sub", "add_scaled", "sub_scaled", "rsub", "rsub_scaled"])
"""Linear in both operands together."""
_PRODUCTS = frozenset(["mul", "div", "mul_number", "div_number"])
"""Linear in the first operand, `mul` in either."""


@cases("clone", "to_copy", "to_device")
def elementwise(call: Call, number: int) -> list[Case]:
    """Cut along any dimension of the result: an operand that is broadcast there is needed whole."""
    shape = np.broadcast_shapes(*call.shapes)
    found = []
    for dim in range(len(shape)):
        inputs = []
        for own in call.shapes:
            at = dim - (len(shape) - len(own))
            inputs.append(Shard(at) if at >= 0 and own[at] == shape[dim] and shape[dim] != 1 else REPLICATE)
        if any(isinstance(each, Shard) for each in inputs):
            found.append(Case(tuple(inputs), Shard(dim)))
    return found + _of_summands(call)


def _of_summands(call: Call) -> list[Case]:
    """Where operands are still to be added up, and what is computed is linear in them."""
    name, count = call.op.name, len(call.operands)
    if name in _LINEAR and count == 1:
        return [Case((SUM,), SUM)]
    if name in _SUMS and count == 2 and call.shapes[0] == call.shapes[1]:
        return [Case((SUM, SUM), SUM)]
    if name in _PRODUCTS:
        first = call.args[0] is call.operands[0]
        if count == 1:
            return [Case((SUM,), SUM)] if first or name.startswith("mul") else []
        return [Case((SUM, REPLICATE), SUM), *([Case((REPLICATE, SUM), SUM)] if name == "mul" else [])]
    return []


@cases(
    "tril triu cholesky cholesky_ex cholesky_inverse det eig eigh eigvals eigvalsh geqrf inv_ex ldl_factor_ex lu "
    "lu_factor_ex matrix_exp qr slogdet svd svdvals pixel_shuffle pixel_unshuffle shifted view_as_complex "
    "view_as_real one_hot constant_pad_nd"
)
def of_matrices(call: Call, number: int) -> list[Case]:
    """Ops of the last two dimensions, or of those at the end that are padded: the ones before may be cut."""
    ndim = len(call.shapes[0])
    last = {"one_hot": 0, "view_as_real": 0, "view_as_complex": 1, "pixel_shuffle": 3, "pixel_unshuffle": 3}
    used = len(call.argument("pad")) // 2 if call.op.name == "constant_pad_nd" else last.get(call.op.name, 2)
    others = tuple([REPLICATE] * (len(call.operands) - 1))
    return [Case((Shard(dim), *others), Shard(dim)) for dim in range(ndim - used)]


@cases("prelu")
def _prelu(call: Call, number: int) -> list[Case]:
    """The slopes are those of the second dimension."""
    return [Case((Shard(dim), REPLICATE), Shard(dim)) for dim in range(len(call.shapes[0])) if dim != 1]
