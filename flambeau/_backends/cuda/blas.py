"""cuBLAS: products of matrices that lie by rows or by columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.quick import name_of
from ..._core.process.gpu_choices import CHOICES
from .recorded_blas import RecordedBlas
from .waits import HERE

_TYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14}
"""What CUDA calls the types of elements."""
_SINGLE, _DOUBLE, _SHORTENED = 68, 70, 77
"""What cuBLAS calls ways of computing: in float32, in float64, and with operands of float32 shortened to 19 bits."""
_DEFAULT = -1
_AS_IT_IS, _TURNED = 0, 1


class Blas:
    """The library, with the constants that its calls take by address."""

    def __init__(self) -> None:
        from cupy.cuda.device import get_cublas_handle
        from cupy_backends.cuda.libs import cublas

        self._library = cublas
        self._products: dict[Any, tuple[Any, ...]] = {}
        self._handle = get_cublas_handle
        self._numbers = {
            name: (np.ones((), kind), np.zeros((), kind))
            for name, kind in (
                ("float16", "f4"), ("bfloat16", "f4"), ("float32", "f4"), ("float64", "f8"), ("complex64", "c8"),
                ("complex128", "c16"),
            )
        }  # fmt: skip
        self._addresses = {
            name: (one.ctypes.data, nothing.ctypes.data) for name, (one, nothing) in self._numbers.items()
        }

    def multiply(self, result: Any, left: Any, right: Any, added: bool = False) -> None:
        """Products along the first dimension, `added` to what is there or not."""
        target, first, second = result.form, left.form, right.form
        key = (
            target.dtype, target.shape, target.strides, first.shape, first.strides, second.strides, added,
            CHOICES.shortened_products,
        )  # fmt: skip
        found = self._products.get(key)
        if found is None:
            found = self._products[key] = self._prepared(target, first, second, added)
        name, sizes, after_right, after_left, after_result, rest = found
        library = self._library if HERE.recording is None else RecordedBlas(HERE.recording.stream)
        getattr(library, name)(
            self._handle(), *sizes, right.pointer, *after_right, left.pointer, *after_left, result.pointer,
            *after_result, *rest,
        )  # fmt: skip

    def _prepared(self, target: Any, first: Any, second: Any, added: bool) -> tuple[Any, ...]:
        """The name of the library's function, and what it is given between the addresses.

        The library counts columns first: it is given the transposed problem.
        """
        name = name_of(target.dtype)
        kind = _TYPES[name]
        one, nothing = self._addresses[name]
        before = one if added else nothing
        way = _DOUBLE if name in ("float64", "complex128") else _SINGLE
        if CHOICES.shortened_products and name in ("float32", "complex64"):
            way = _SHORTENED
        *batch, rows, columns = target.shape
        turn_a, step_a, stride_a = placed(first)
        turn_b, step_b, stride_b = placed(second)
        step_c = max(target.strides[-2] // target.itemsize, columns)
        sizes = turn_b, turn_a, columns, rows, first.shape[-1], one
        if not batch or batch[0] == 1:
            after = (kind, step_b), (kind, step_a, before), (kind, step_c)
            return "gemmEx", sizes, *after, (way, _DEFAULT)
        after_result = kind, step_c, rows * columns
        between = (kind, step_b, stride_b), (kind, step_a, stride_a, before), after_result
        return "gemmStridedBatchedEx", sizes, *between, (batch[0], way, _DEFAULT)


def placed(form: Any) -> tuple[int, int, int]:
    """Whether a matrix is to be turned, how far its rows (or columns) are apart, and how far the matrices are."""
    item = form.itemsize
    *batch, outer, inner = form.strides
    rows, columns = form.shape[-2:]
    step = batch[0] // item if batch else 0
    if (inner == item or columns == 1) and (outer >= columns * item or rows == 1):
        return _AS_IT_IS, max(outer // item, columns) if rows > 1 else columns, step
    return _TURNED, max(inner // item, rows) if columns > 1 else rows, step
