"""How much memory NumPy asks for: every allocation for the elements of an array, those of temporary ones included."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_SET_HANDLER = 304
"""The place of `PyDataMem_SetHandler` in NumPy's table of functions."""

_libc = ctypes.CDLL(None)
for _name, _result, _arguments in (
    ("malloc", ctypes.c_void_p, [ctypes.c_size_t]),
    ("calloc", ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]),
    ("realloc", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]),
    ("free", None, [ctypes.c_void_p]),
):
    getattr(_libc, _name).restype, getattr(_libc, _name).argtypes = _result, _arguments

_sizes: list[int] = []


def _malloc(context: Any, size: int) -> Any:
    _sizes.append(size)
    return _libc.malloc(size)


def _calloc(context: Any, count: int, size: int) -> Any:
    _sizes.append(count * size)
    return _libc.calloc(count, size)


def _realloc(context: Any, memory: Any, size: int) -> Any:
    _sizes.append(size)
    return _libc.realloc(memory, size)


def _free(context: Any, memory: Any, size: int) -> None:
    _libc.free(memory)


_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_Malloc = ctypes.CFUNCTYPE(_pointer, _pointer, _size)
_Calloc = ctypes.CFUNCTYPE(_pointer, _pointer, _size, _size)
_Realloc = ctypes.CFUNCTYPE(_pointer, _pointer, _pointer, _size)
_Free = ctypes.CFUNCTYPE(None, _pointer, _pointer, _size)


class _Handler(ctypes.Structure):
    """NumPy's `PyDataMem_Handler`."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", _pointer), ("malloc", _Malloc),
        ("calloc", _Calloc), ("realloc", _Realloc), ("free", _Free),
    )  # fmt: skip


# Arrays that were made while it was in charge call it when they are freed, however late that is.
_handler = _Handler(b"counted", 1, None, _Malloc(_malloc), _Calloc(_calloc), _Realloc(_realloc), _Free(_free))
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [_pointer, ctypes.c_char_p, _pointer]
_CAPSULE_NAME = b"mem_handler"  # the capsule keeps no copy
_capsule = _new_capsule(ctypes.addressof(_handler), _CAPSULE_NAME, None)


def _set_handler(handler: Any) -> Any:
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.restype, find.argtypes = _pointer, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(find(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(_pointer))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])(handler)


@contextmanager
def counted_allocations() -> Iterator[list[int]]:
    """A list of the sizes, in bytes, of all memory that arrays ask for inside the context."""
    before = _set_handler(_capsule)
    _sizes.clear()
    found: list[int] = []
    try:
        yield found
    finally:
        _set_handler(before)
        found += _sizes
