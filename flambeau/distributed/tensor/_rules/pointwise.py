"""Elementwise ops: their operands are cut alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...._core.tensor import Tensor
from ...._dispatch.axes import Last
from .._layout import Layout
from ..placement_types import Shard
from .choice import REPLICATE, SUM, Call, Case, cases, runs

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


def of_last(call: Call, number: int) -> list[Case]:
    """Ops of the last dimensions: those before them may be cut, where all tensors and results have them alike."""
    axes = call.op.axes
    assert isinstance(axes, Last)
    count = axes.count if isinstance(axes.count, int) else axes.count(*call.args)
    names = [name for name, each in zip(call.op.parameters, call.args, strict=True) if isinstance(each, Tensor)]
    leads = [
        shape[: len(shape) - count + (name in axes.vectors)] for name, shape in zip(names, call.shapes, strict=True)
    ]
    forms = [shape for shape, _ in call.forms()]
    if any(each != leads[0] for each in leads) or any(each[: len(leads[0])] != leads[0] for each in forms):
        return []
    return [Case(tuple([Shard(dim)] * len(leads)), Shard(dim)) for dim in range(len(leads[0]))]


@runs("detach")
def _run_detach(call: Call) -> Callable[[list[Tensor], list[Layout]], Tensor]:
    """By the function, which also forgets that the result is a view of what needs a gradient."""
    return lambda parts, layouts: parts[0].detach()


@cases("prelu")
def _prelu(call: Call, number: int) -> list[Case]:
    """The slopes are those of the second dimension."""
    return [Case((Shard(dim), REPLICATE), Shard(dim)) for dim in range(len(call.shapes[0])) if dim != 1]
