"""What generated kernels ask about their arguments: dtypes that they know, gradients that they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...._core.dtype import bfloat16, float16, float32, float64

_NAMES: dict[np.dtype[Any], str] = {
    bfloat16.numpy: "bfloat16",
    float16.numpy: "float16",
    float32.numpy: "float32",
    float64.numpy: "float64",
}
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
FULL_NAMES: dict[np.dtype[Any], str] = {_SINGLE: "float32", _DOUBLE: "float64"}
"""The floating-point types of at least single precision."""


def float_name(array: Any) -> str | None:
    """The name of an array's dtype if it is a floating-point one that kernels read; else None."""
    return _NAMES.get(array.dtype)


def name_of_type(dtype: np.dtype[Any]) -> str | None:
    """The name of a dtype if it is a floating-point one that kernels read; else None."""
    return _NAMES.get(dtype)


class KernelsByType(dict[np.dtype[Any], Any]):
    """The kernels of a family by the dtype of their arrays, found when first asked for; None for other dtypes.

    One look at a dictionary: the name of a dtype and the kernel of that name would be two calls more.
    """

    def __init__(self, find: Callable[[str], Any], names: Mapping[np.dtype[Any], str] = FULL_NAMES) -> None:
        self.find, self.names = find, names

    def __missing__(self, dtype: np.dtype[Any]) -> Any:
        name = self.names.get(dtype)
        found = self[dtype] = None if name is None else self.find(name)
        return found


def wide(array: Any) -> Any:
    """A half-precision array as float32; any other as it is."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums of elements of `dtype` are kept."""
    return _DOUBLE if dtype.itemsize == 8 else _SINGLE


def only_gradient(grads: list[Any]) -> Any:
    """The gradient of the first of several results, if no other result has one; else None."""
    return grads[0] if all(each is None for each in grads[1:]) else None
