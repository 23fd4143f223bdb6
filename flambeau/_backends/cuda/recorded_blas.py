"""cuBLAS while a graph is recorded: CuPy's own calls of it refuse to be."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_int64, c_void_p
from functools import cache
from typing import Any


@cache
def _library() -> Any:
    """The library, which CuPy has loaded."""
    for version in (13, 12):
        try:
            found = ctypes.CDLL(f"libcublas.so.{version}")
        except OSError:
            continue
        head: list[Any] = [c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p]
        found.cublasGemmEx.argtypes = [
            *head, c_void_p, c_int, c_int, c_void_p, c_int, c_int, c_void_p, c_void_p, c_int, c_int, c_int, c_int,
        ]  # fmt: skip
        found.cublasGemmStridedBatchedEx.argtypes = [
            *head, c_void_p, c_int, c_int, c_int64, c_void_p, c_int, c_int, c_int64, c_void_p, c_void_p, c_int, c_int,
            c_int64, c_int, c_int, c_int,
        ]  # fmt: skip
        found.cublasSetStream_v2.argtypes = [c_void_p, c_void_p]
        return found
    raise RuntimeError("cuBLAS is not there: products of matrices cannot be captured into a graph")


class RecordedBlas:
    """The functions that products need, with the arguments of CuPy's, in one queue."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def _call(self, name: str, handle: int, *args: Any) -> None:
        library = _library()
        status = library.cublasSetStream_v2(handle, self._stream) or getattr(library, name)(handle, *args)
        if status:
            raise RuntimeError(f"CUDA error: {name} gave status {status} while a graph was captured")

    def gemmEx(self, handle: int, *args: Any) -> None:
        """A product."""
        self._call("cublasGemmEx", handle, *args)

    def gemmStridedBatchedEx(self, handle: int, *args: Any) -> None:
        """Many products."""
        self._call("cublasGemmStridedBatchedEx", handle, *args)
