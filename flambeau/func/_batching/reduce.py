"""Reductions that are said in other ops, and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch.op import OPS, Op
from .by_axes import along, rank
from .level import Vmap
from .rules import decomposition, rule


@rule("argmax", "argmin", "aminmax")
def _position(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    tensor, dim, keepdim = args
    if dim is not None:
        return along(level, op, args)
    result = op(tensor.value.reshape(level.size, tensor._array.size), 1, False)
    if not keepdim:
        return result
    shape = (level.size, *[1] * rank(tensor))
    return tuple(each.reshape(shape) for each in result) if type(result) is tuple else result.reshape(shape)


@decomposition("renorm")
def _renorm(self: Any, p: float, dim: int, maxnorm: float) -> Any:
    others = tuple(each for each in range(rank(self)) if each != dim % rank(self))
    size = OPS["vector_norm"](self, p, others, True)
    return self * (maxnorm / (size + 1e-7)).where(size > maxnorm, size.new_ones(()))


@decomposition("dist")
def _dist(self: Any, other: Any, p: float) -> Any:
    return OPS["vector_norm"]((self - other).reshape(-1), p, (0,), False)


@rule("searchsorted")
def _searchsorted(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    sequence, values, right, dtype = args
    if rank(sequence) == 1:  # for all values; elsewhere leading dimensions are those of both
        rows = level.front(values).reshape(level.size, values._array.size)
        found = op(level.front(sequence), rows, right, dtype)
        return found.reshape(level.size, *values._array.shape)
    return op(level.front(sequence), level.front(values), right, dtype)


@rule("isin")
def _isin(level: Vmap, op: Op, args: Sequence[Any]) -> Any:
    elements, tests, invert = args
    left = level.front(elements).reshape(level.size, elements._array.size, 1)
    among = left == level.front(tests).reshape(level.size, 1, tests._array.size)
    found = among.any(-1).reshape(level.size, *elements._array.shape)
    return found.logical_not() if invert else found
