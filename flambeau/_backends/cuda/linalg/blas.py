"""cuBLAS: products of matrices that lie by rows or by columns."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from ctypes import byref, c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.process.gpu_choices import CHOICES
from ..runtime.compile_queue import COMPILE_QUEUE

_TYPES = {"float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14}
"""What CUDA calls the types of elements."""
_SINGLE, _DOUBLE, _SHORTENED = 68, 70, 77
"""What cuBLAS calls ways of computing: in float32, in float64, and with operands of float32 shortened to 19 bits."""
_DEFAULT = -1
_AS_IT_IS, _TURNED = 0, 1

Product = Callable[[int, int, int], None]
"""Multiplies matrices: the addresses of the result and of both operands."""


class Blas:
    """The library, with the constants that its calls take by address."""

    def __init__(self, stream: Callable[[], int]) -> None:
        self._library = library()
        self._stream = stream
        self._handles: dict[int, c_void_p] = {}
        """One for each queue: to tell a handle about another queue costs as much as a product."""
        self._numbers = {
            name: (np.ones((), kind), np.zeros((), kind))
            for name, kind in (
                ("float16", "f4"), ("bfloat16", "f4"), ("float32", "f4"), ("float64", "f8"), ("complex64", "c8"),
                ("complex128", "c16"),
            )
        }  # fmt: skip
        self._addresses = {
            name: (c_void_p(one.ctypes.data), c_void_p(nothing.ctypes.data))
            for name, (one, nothing) in self._numbers.items()
        }

    def _handle(self) -> c_void_p:
        stream = self._stream()
        return self._handles.get(stream) or self.handle_for(stream)

    def handle_for(self, stream: int) -> c_void_p:
        """The handle of a queue; before a graph is recorded there it has to exist."""
        if stream not in self._handles:
            made = c_void_p()
            check(self._library.cublasCreate_v2(byref(made)))
            check(self._library.cublasSetStream_v2(made, c_void_p(stream)))
            self._handles[stream] = made
        return self._handles[stream]

    def product(self, target: Any, first: Any, second: Any, added: bool) -> Product:
        """Multiplies matrices of these forms, along the first of three dimensions where there are so many.

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
        handle = self._handle
        if not batch or batch[0] == 1:
            run = self._library.cublasGemmEx

            def multiply(result: int, left: int, right: int) -> None:
                given = (
                    handle(), *sizes, c_void_p(right), kind, step_b, c_void_p(left), kind, step_a, before,
                    c_void_p(result), kind, step_c, way, _DEFAULT,
                )  # fmt: skip
                if COMPILE_QUEUE.steps is None:
                    check(run(*given))
                else:
                    COMPILE_QUEUE.start(lambda: check(run(*given)))

            return multiply
        run_all, count = self._library.cublasGemmStridedBatchedEx, batch[0]
        apart_a, apart_b, apart_c = (c_int64(each) for each in (stride_a, stride_b, rows * columns))

        def multiply_all(result: int, left: int, right: int) -> None:
            given = (
                handle(), *sizes, c_void_p(right), kind, step_b, apart_b, c_void_p(left), kind, step_a, apart_a, before,
                c_void_p(result), kind, step_c, apart_c, count, way, _DEFAULT,
            )  # fmt: skip
            if COMPILE_QUEUE.steps is None:
                check(run_all(*given))
            else:
                COMPILE_QUEUE.start(lambda: check(run_all(*given)))

        return multiply_all


@cache
def library() -> Any:
    """The library by ctypes: CuPy's own calls tell it about the queue each time, and refuse to be recorded.

    Its functions are not told the types of their arguments: to check twenty of them takes longer than to say which ones
    are addresses.
    """
    importlib.import_module("cupy_backends.cuda.libs.cublas")  # this loads it
    for version in (13, 12):
        try:
            found = ctypes.CDLL(f"libcublas.so.{version}")
        except OSError:
            continue
        return found
    raise RuntimeError("cuBLAS is not there: matrices cannot be multiplied on a GPU without it")


def check(status: int) -> None:
    """Raise what a call of the library says by its number."""
    if status:
        raise RuntimeError(f"CUDA error: a product of matrices by cuBLAS gave status {status}")


def placed(form: Any) -> tuple[int, int, int]:
    """Whether a matrix is to be turned, how far its rows (or columns) are apart, and how far the matrices are."""
    item = form.itemsize
    *batch, outer, inner = form.strides
    rows, columns = form.shape[-2:]
    step = batch[0] // item if batch else 0
    if (inner == item or columns == 1) and (outer >= columns * item or rows == 1):
        return _AS_IT_IS, max(outer // item, columns) if rows > 1 else columns, step
    return _TURNED, max(inner // item, rows) if columns > 1 else rows, step
