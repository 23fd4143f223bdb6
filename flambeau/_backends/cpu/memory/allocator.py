"""The caching allocator at work: NumPy's arrays of 128 KB or more come from it, in every thread that uses tensors.

NumPy lets each thread (each context, in Python's terms) choose the functions that get and release the memory of arrays,
and an array remembers the ones that made it. So arrays from before and after, and those of other threads, live side by
side with the pool's, and nothing that runs Python code is called when an array is made.

`FLAMBEAU_CPU_POOL=0` switches it off.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

from ...._codegen.machine.allocator import THRESHOLD, Allocator
from ...._codegen.machine.engine import engine
from ...._core.modes import in_every_thread
from ...._core.process.locks import new_lock

_SET_HANDLER, _GET_HANDLER = 304, 305
"""Where NumPy's table of functions has those that set and get the handler; this is fixed since version 1.22."""

_CAPSULE_NAME = ctypes.create_string_buffer(b"mem_handler")
_CAPSULE_NAME_POINTER = ctypes.addressof(_CAPSULE_NAME)


class _Functions(ctypes.Structure):
    """A handler's context and functions."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free"))


class _Handler(ctypes.Structure):
    """NumPy's description of a handler."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions))


_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_void_p)


def _numpy_function(position: int, *arguments: Any) -> Any:
    # NumPy's stubs leave it out.
    table = _python.PyCapsule_GetPointer(np._core.multiarray._ARRAY_API, None)  # type: ignore[attr-defined]
    address = ctypes.c_size_t.from_address(table + position * ctypes.sizeof(ctypes.c_size_t)).value
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)(address)


class _Pool:
    """The allocator, put into NumPy's hands."""

    def __init__(self) -> None:
        running = engine()
        self.allocator = Allocator(running)
        self.allocator.set(cache_limit=physical_memory() // 4, total_limit=(1 << 63) - 1)
        self._set_handler = _numpy_function(_SET_HANDLER, ctypes.py_object)
        previous = _numpy_function(_GET_HANDLER)()
        before = _python.PyCapsule_GetPointer(previous, _CAPSULE_NAME_POINTER)
        addresses = self.allocator.addresses
        self._handler = _Handler(
            name=b"flambeau",
            version=1,
            functions=_Functions(
                before + _Handler.functions.offset,  # what is not for the pool goes to the one before
                *[addresses[f"flambeau_pool_{name}"] for name in ("malloc", "calloc", "realloc", "free")],
            ),
        )
        self._capsule = _python.PyCapsule_New(ctypes.addressof(self._handler), _CAPSULE_NAME_POINTER, None)
        # Arrays may be freed when all modules are gone already: what they need for that is never taken down.
        for needed in (self, running, previous, _CAPSULE_NAME):
            _python.Py_IncRef(ctypes.py_object(needed))

    def enter_thread(self) -> None:
        """Let the arrays that this thread makes from now on come from the pool."""
        self._set_handler(self._capsule)

    def works(self) -> bool:
        """Whether an array comes from the pool: then NumPy has understood. It leaves no trace."""
        np.empty(THRESHOLD, np.uint8)
        found = self.allocator["allocations"] == self.allocator["frees"] == 1
        self.allocator.empty()
        self.allocator.set(allocations=0, frees=0, mapped=0, unmapped=0)
        self.allocator.reset_peaks()
        return found


_pool: _Pool | None = None
_tried = False
_lock = new_lock()


def start() -> bool:
    """Start the pool if it is possible and wanted; whether it runs."""
    global _pool, _tried
    if _tried:
        return _pool is not None
    with _lock:
        if not _tried:
            if os.environ.get("FLAMBEAU_CPU_POOL") != "0":
                pool = _Pool()
                in_every_thread(pool.enter_thread)
                if pool.works():
                    _pool = pool
            _tried = True
    return _pool is not None


def allocator() -> Allocator | None:
    """The allocator; None if there is none, or none yet."""
    return None if _pool is None else _pool.allocator


def physical_memory() -> int:
    """How much memory this process may use: the machine's, or what its container is allowed."""
    if not hasattr(os, "sysconf"):
        return _windows_memory()
    pages: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            pages = min(pages, int(text))
    return pages


class _MemoryStatus(ctypes.Structure):
    """What Windows says of the machine's memory: `MEMORYSTATUSEX`."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("physical", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 6),
    )


def _windows_memory() -> int:
    status = _MemoryStatus()
    status.length = ctypes.sizeof(status)
    ctypes.CDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.physical)
