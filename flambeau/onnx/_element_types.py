"""Element types: the names of ONNX's and of NumPy's and Flambeau's side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays.quick import name_of
from .._core.device import CPU
from .._core.dtype import bfloat16, dtype_named
from .._core.dtype import dtype as DType
from .._core.kind import kind_of_array
from .._core.tensor import Tensor
from .errors import SymbolicValueError

_NUMBERS: dict[str, int] = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
}  # fmt: skip
"""The numbers of `TensorProto.DataType`."""

_NAMES = {number: name for name, number in _NUMBERS.items()}

BFLOAT16 = bfloat16.numpy


def onnx_type(dtype: Any) -> int:
    """The number that ONNX has for a NumPy dtype."""
    found = _NUMBERS.get(name_of(np.dtype(dtype)))
    if found is None:
        raise SymbolicValueError(f"ONNX has no element type for {dtype}")
    return found


def numpy_type(number: int) -> np.dtype[Any]:
    """The NumPy dtype that an element type of ONNX has."""
    name = _NAMES.get(number)
    if name is None:
        raise ValueError(f"element type {number} of ONNX is not one that a tensor here can have")
    return dtype_named(name).numpy


def torch_type(number: int) -> DType:
    """The dtype of the tensors that have an element type of ONNX."""
    return kind_of_array(numpy_type(number), CPU).dtype


def tensor_over(array: Any) -> Tensor:
    """A tensor over an array of any dtype, those included that NumPy itself does not have."""
    return Tensor._from_parts((array, kind_of_array(array.dtype, CPU), [0, None]))
