"""`out=` of the ops whose results are stored as they are: the tensors must have the results' dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from ..._core.dtype import (
    LEGACY_NAMES,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)  # fmt: skip
from ..._core.tensor import Tensor
from ..public.protocol import write_out
from .inplace import check_no_overlap, check_separate

Result = TypeVar("Result")
"""A tensor, or a tuple of them."""

_WORDS: dict[dtype, str] = {
    bool_: "bool", uint8: "unsigned char", int8: "signed char", int16: "short int", int32: "int", int64: "long int",
    float16: "c10::Half", bfloat16: "c10::BFloat16", float32: "float", float64: "double",
    complex64: "c10::complex<float>", complex128: "c10::complex<double>",
}  # fmt: skip


def store_exactly(result: Result, out: Any, operands: tuple[Any, ...] = ()) -> Result:
    """`result` where `out` is None; otherwise `out`, filled with it."""
    if out is None:
        return result
    pairs: Iterable[tuple[Any, Any]] = [(result, out)]
    if isinstance(result, tuple):
        pairs = zip(result, out, strict=False) if isinstance(out, (tuple, list)) else ()  # the latter is refused below
    for each, into in pairs:
        if isinstance(into, Tensor) and into._kind.dtype is not each._kind.dtype:
            expected, given = each._kind.dtype, into._kind.dtype
            raise RuntimeError(
                f"Expected out tensor to have dtype {_WORDS.get(expected, expected)}, but got "
                f"{_WORDS.get(given, given)} instead ({expected}, {given})"
            )
    return write_out(result, out, operands)


def store_apart(result: Result, out: Any, operands: tuple[Any, ...] = ()) -> Result:
    """`result`, or `out` filled with it, for ops that refuse an `out=` which shares memory with an operand."""
    for into in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(into, Tensor):
            check_no_overlap(into)
        for operand in operands:
            if isinstance(into, Tensor) and isinstance(operand, Tensor):
                check_separate(into, operand)
    return store_exactly(result, out)


def store_truth(result: Result, out: Any, operands: tuple[Any, ...] = ()) -> Result:
    """`result`, or `out` filled with it, for truth values, which may also be stored as uint8."""
    if isinstance(out, Tensor) and out._kind.dtype not in (bool_, uint8):
        raise RuntimeError(f"only a bool tensor is supported for the result, got: {LEGACY_NAMES[out._kind.dtype]}")
    return write_out(result, out, operands)


def write_packed(result: Tensor, out: Any, operands: tuple[Any, ...] = ()) -> Tensor:
    """Store a result that PyTorch copies into `out`, whose layout it does not have therefore."""
    return write_out(result.contiguous(), out, operands)


def refuse_out(name: str, out: Any) -> None:
    """Refuse an `out=` given to a form of a function that has none, though others of its forms have."""
    if out is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: out= is taken along a dim only")


def store_resized(result: Tensor, out: Any, operands: tuple[Any, ...] = ()) -> Tensor:
    """`store_exactly` for ops that give `out` another size without a warning."""
    if isinstance(out, Tensor) and out._kind is result._kind and out._array.shape != result._array.shape:
        out.resize_(result._array.shape)
    return store_exactly(result, out, operands)
