"""`ReduceOp`: how the values of the processes are combined."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ReduceOp", "combiner"]

Combine = Callable[[Any, Any], None]
"""Combines an array with what came from another process, in place."""


class RedOpType(enum.IntEnum):
    """How the values of the processes are combined."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = range(10)

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """The old name of `ReduceOp`: how the values of the processes are combined.

    Args:
        op: the way. Default: `RedOpType.SUM`.

    Example:
        >>> dist.reduce_op.SUM == dist.ReduceOp.SUM
        True
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __new__(cls, op: Any = RedOpType.SUM) -> Any:
        """The member that is meant: they are what is passed around."""
        return RedOpType(op)


reduce_op = ReduceOp

_UFUNCS: dict[int, Any] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}


def combiner(op: Any, array_type: np.dtype[Any]) -> Combine:
    """The function that combines arrays of a type. Half-precision numbers are rounded after each step, as in Gloo."""
    member = checked_op(op)
    if member in (RedOpType.MIN, RedOpType.MAX):
        return _least if member is RedOpType.MIN else _greatest
    if array_type.kind not in "iub" and member in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR):
        raise RuntimeError(f"Cannot use ReduceOp.{member.name} with non-integral dtype")
    ufunc = _UFUNCS[member]

    def combine(own: Any, other: Any) -> None:
        ufunc(own, other, out=own)

    return combine


def checked_op(op: Any) -> RedOpType:
    """The member that `op` is, if processes of any kind can do it."""
    member = RedOpType(op)
    if member is RedOpType.PREMUL_SUM or member is RedOpType.UNUSED:
        raise RuntimeError(f"Cannot use ReduceOp.{member.name} here: only NCCL has it")
    return member


def _least(own: Any, other: Any) -> None:
    # Not np.minimum, which keeps what is not a number: of two values, the other one where it is less.
    np.copyto(own, other, where=other < own)


def _greatest(own: Any, other: Any) -> None:
    np.copyto(own, other, where=other > own)


def finish(array: Any, op: Any, size: int) -> None:
    """What is left to do to the combined values: a mean divides."""
    if op == RedOpType.AVG:
        if array.dtype.kind in "iub":
            np.floor_divide(array, size, out=array)
        else:
            np.divide(array, array.dtype.type(size), out=array)
