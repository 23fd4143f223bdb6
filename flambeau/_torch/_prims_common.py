"""Questions about dtypes and strides, under the names of `torch._prims_common`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from flambeau._core.dtype import dtype
from flambeau._core.tensor import Tensor

Number: TypeAlias = bool | int | float | complex
NumberType: TypeAlias = type
ShapeType: TypeAlias = Any
StrideType: TypeAlias = Any
TensorLikeType: TypeAlias = Tensor
TensorLike = Tensor


def is_boolean_dtype(dtype: dtype) -> bool:
    """Whether elements are True or False."""
    return dtype.name == "bool"


def is_integer_dtype(dtype: dtype) -> bool:
    """Whether elements are integers."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype.name == "bool")


def is_float_dtype(dtype: dtype) -> bool:
    """Whether elements are real floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: dtype) -> bool:
    """Whether elements are complex."""
    return dtype.is_complex


def is_low_precision_dtype(dtype: dtype) -> bool:
    """Whether elements have fewer bits than float32."""
    return dtype.name in ("bfloat16", "float16") or dtype.name.startswith("float8")


def corresponding_real_dtype(dtype: dtype) -> dtype:
    """The type of the parts of complex elements."""
    if not dtype.is_complex:
        raise KeyError(dtype)
    return dtype.to_real()


def corresponding_complex_dtype(dtype: dtype) -> dtype:
    """The complex type with such parts."""
    return dtype.to_complex()


def dtype_to_type(dtype: dtype) -> type:
    """Python's class of such numbers."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; not `row_major`: of matrices that are stored by columns."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if row_major or len(shape) < 2:
        return tuple(strides)
    return (*strides[:-2], 1, max(shape[-2], 1))


def check(b: bool, s: Any, exc_type: type[Exception] = RuntimeError) -> None:
    """Raise an error unless a condition holds."""
    if not b:
        raise exc_type(s())
