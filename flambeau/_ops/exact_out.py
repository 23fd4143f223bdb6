"""`out=` of the ops whose results are stored as they are: the tensors must have the results' dtypes."""

from __future__ import annotations

from typing import Any

from .._core.dtype import (
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
from .._core.tensor import Tensor
from .registry import write_out

_WORDS: dict[dtype, str] = {
    bool_: "bool", uint8: "unsigned char", int8: "signed char", int16: "short int", int32: "int", int64: "long int",
    float16: "c10::Half", bfloat16: "c10::BFloat16", float32: "float", float64: "double",
    complex64: "c10::complex<float>", complex128: "c10::complex<double>",
}  # fmt: skip


def store_exactly(result: Any, out: Any) -> Any:
    """`result` where `out` is None; otherwise `out`, filled with it."""
    if out is None:
        return result
    pairs = zip(result, out, strict=False) if isinstance(result, tuple) else [(result, out)]
    for each, into in pairs:
        if isinstance(into, Tensor) and into._kind.dtype is not each._kind.dtype:
            expected, given = each._kind.dtype, into._kind.dtype
            raise RuntimeError(
                f"Expected out tensor to have dtype {_WORDS.get(expected, expected)}, but got "
                f"{_WORDS.get(given, given)} instead ({expected}, {given})"
            )
    return write_out(result, out)
