"""The types of generated code: what stands in memory and what is computed with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .ir import ir

VOID = ir.VoidType()
POINTER = ir.PointerType()
BOOL = ir.IntType(1)
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()


@dataclass(frozen=True)
class Scalar:
    """A dtype as generated code sees it: `memory` is its form in an array, `compute` the one in registers."""

    name: str
    memory: ir.Type
    compute: ir.Type
    size: int
    is_float: bool
    is_signed: bool = True

    def __repr__(self) -> str:
        return self.name


float32 = Scalar("float32", F32, F32, 4, True)
float64 = Scalar("float64", F64, F64, 8, True)
float16 = Scalar("float16", F16, F32, 2, True)
bfloat16 = Scalar("bfloat16", I16, F32, 2, True)
bool_ = Scalar("bool", I8, BOOL, 1, False, False)

SCALARS: dict[str, Scalar] = {
    scalar.name: scalar
    for scalar in (
        float32,
        float64,
        float16,
        bfloat16,
        bool_,
        Scalar("int8", I8, I8, 1, False),
        Scalar("uint8", I8, I8, 1, False, False),
        Scalar("int16", I16, I16, 2, False),
        Scalar("int32", I32, I32, 4, False),
        Scalar("int64", I64, I64, 8, False),
    )
}


def scalar_of(dtype: np.dtype[np.generic]) -> Scalar | None:
    """The type of an array's elements; None: generated code does not read such arrays."""
    try:
        return _KNOWN[dtype]
    except KeyError:
        return _KNOWN.setdefault(dtype, SCALARS.get(dtype.name) if dtype.isnative else None)


_KNOWN: dict[np.dtype[np.generic], Scalar | None] = {}
"""What was asked for before: NumPy works out a dtype's name anew each time."""
