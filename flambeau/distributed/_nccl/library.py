"""NCCL's functions, by ctypes. The library is looked for when a process first asks for it."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

from .._errors import DistBackendError

_NAMES = ("libnccl.so.2", "libnccl.so")
ID_LENGTH = 128
TYPES = {
    "int8": 0, "uint8": 1, "bool": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""The library's numbers of types."""


class _Identity(ctypes.Structure):
    _fields_ = [("content", ctypes.c_char * ID_LENGTH)]


class Library:
    """The functions that are used; what goes wrong in one is an error."""

    def __init__(self, found: Any) -> None:
        self._found = found
        pointer, size, number = c_void_p, c_size_t, c_int
        found.ncclGetErrorString.restype = c_char_p
        found.ncclGetErrorString.argtypes = [number]
        found.ncclCommInitRank.argtypes = [pointer, number, _Identity, number]
        found.ncclCommDestroy.argtypes = found.ncclCommAbort.argtypes = [pointer]
        found.ncclCommGetAsyncError.argtypes = [pointer, pointer]
        found.ncclAllReduce.argtypes = found.ncclReduceScatter.argtypes = [
            pointer, pointer, size, number, number, pointer, pointer,
        ]  # fmt: skip
        found.ncclAllGather.argtypes = [pointer, pointer, size, number, pointer, pointer]
        found.ncclBroadcast.argtypes = [pointer, pointer, size, number, number, pointer, pointer]
        found.ncclReduce.argtypes = [pointer, pointer, size, number, number, number, pointer, pointer]
        found.ncclSend.argtypes = found.ncclRecv.argtypes = [pointer, size, number, number, pointer, pointer]

    def call(self, name: str, *arguments: Any) -> None:
        """Call the function `nccl{name}`."""
        status = getattr(self._found, f"nccl{name}")(*arguments)
        if status:
            raise DistBackendError(f"NCCL failed in nccl{name}: {self._found.ncclGetErrorString(status).decode()}")

    def version(self) -> tuple[int, int, int]:
        """The version: (2, 27, 3)."""
        number = c_int()
        self.call("GetVersion", ctypes.byref(number))
        return number.value // 10000, number.value // 100 % 100, number.value % 100

    def new_identity(self) -> bytes:
        """What one process makes and all others need to join its communicator."""
        identity = _Identity()
        self.call("GetUniqueId", ctypes.byref(identity))
        return bytes(identity)

    def communicator(self, identity: bytes, size: int, rank: int) -> int:
        """Join the others; all of them are waited for."""
        made = c_void_p()
        self.call("CommInitRank", ctypes.byref(made), size, _Identity.from_buffer_copy(identity), rank)
        return made.value or 0

    def asynchronous_error(self, communicator: int) -> str | None:
        """What went wrong in something that was started."""
        status = c_int()
        self.call("CommGetAsyncError", communicator, ctypes.byref(status))
        return self._found.ncclGetErrorString(status.value).decode() if status.value else None


@functools.cache
def library() -> Library | None:
    """NCCL, if it is there."""
    found = next((loaded for path in _places() if (loaded := _loaded(path)) is not None), None)
    return None if found is None else Library(found)


def _loaded(path: str) -> Any:
    try:
        return ctypes.CDLL(path)
    except OSError:
        return None


def _places() -> Iterator[str]:
    yield from _NAMES
    try:
        found = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        yield str(Path(folder) / "lib" / _NAMES[0])
