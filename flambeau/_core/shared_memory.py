"""Memory that several processes see: what is under a storage after `share_memory_`.

A block is a file in memory. By default it has no name (`file_descriptor`): it goes away with the last process that
maps it, however that ends, and other processes are given the open file. With a name (`file_system`) a block costs its
receivers no open file between messages; the process that made it removes the name, and after a kill Python's resource
tracker does. On Windows a block is a section object without a name, and a message carries a handle of it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import sys
import tempfile
import weakref
from typing import Any

import numpy as np

from .process.platform import IN_BROWSER

_PROTECTION = 1 | 2  # PROT_READ, PROT_WRITE: the same numbers on every POSIX system
_SHARED = 1  # MAP_SHARED
_PAGE_READWRITE = 4
ALL_ACCESS = 0xF001F  # FILE_MAP_ALL_ACCESS
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
_TRACKED = _FOLDER == "/dev/shm"  # the tracker removes names of shared memory, no other files
_NUMBERS = itertools.count()


class Strategy:
    """How memory that is shared from now on is made known to other processes."""

    current = "file_system" if sys.platform in ("darwin", "win32") else "file_descriptor"


def new_file(nbytes: int) -> int:
    """A descriptor of a file in memory that has no name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("flambeau")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, nbytes)
    return descriptor


class _Posix:
    """Maps open files. Python's `mmap` would keep a second descriptor open for each block."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self.unmap = library.munmap

    def map(self, descriptor: int, nbytes: int) -> int:
        address = self._library.mmap(None, nbytes, _PROTECTION, _SHARED, descriptor, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return int(address)

    def close(self, descriptor: int, _close: Any = os.close) -> None:  # the module's names may be gone
        _close(descriptor)

    def identity(self, descriptor: int) -> tuple[int, int]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino


class _Windows:
    """Maps section objects: memory of the paging file behind a handle."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL("kernel32", use_last_error=True)
        library.CreateFileMappingW.restype = library.MapViewOfFile.restype = ctypes.c_void_p
        number, pointer = ctypes.c_uint32, ctypes.c_void_p
        library.CreateFileMappingW.argtypes = (pointer, pointer, number, number, number, pointer)
        library.MapViewOfFile.argtypes = (pointer, number, number, number, ctypes.c_size_t)
        library.UnmapViewOfFile.argtypes = library.CloseHandle.argtypes = (pointer,)
        self.close = library.CloseHandle

    def create(self, nbytes: int) -> int:
        """A handle of new memory, zeros."""
        handle = self._library.CreateFileMappingW(
            ctypes.c_void_p(-1), None, _PAGE_READWRITE, nbytes >> 32, nbytes & 0xFFFFFFFF, None
        )
        if not handle:
            raise self._failure(nbytes)
        return int(handle)

    def map(self, handle: int, nbytes: int) -> int:
        address = self._library.MapViewOfFile(handle, ALL_ACCESS, 0, 0, nbytes)
        if not address:
            raise OSError(*self._last_error())
        return int(address)

    def unmap(self, address: int, nbytes: int) -> None:
        self._library.UnmapViewOfFile(address)

    def identity(self, handle: int) -> tuple[int, int]:
        """What no other block has; a block that arrives brings its own along."""
        return os.getpid(), next(_NUMBERS)

    def _failure(self, nbytes: int) -> RuntimeError:
        code, text = self._last_error()
        return RuntimeError(f"unable to make {nbytes} bytes of shared memory: {text} ({code})")

    def _last_error(self) -> tuple[int, str]:
        code: int = getattr(ctypes, "get_last_error", ctypes.get_errno)()
        return code, f"Windows' error {code}"


@functools.cache
def _system() -> Any:
    """How this system maps shared memory."""
    return _Windows() if sys.platform == "win32" else _Posix()


def _finalize(*args: Any, **kwargs: Any) -> None:
    from multiprocessing.util import Finalize

    Finalize(*args, **kwargs)


def _new_name() -> str:
    """A path that no other process and no other block uses."""
    return os.path.join(_FOLDER, f"flambeau_{os.getpid()}_{os.urandom(4).hex()}_{next(_NUMBERS)}")


def _track(path: str) -> None:
    if _TRACKED:
        from multiprocessing import resource_tracker  # the browser has none

        resource_tracker.register("/" + os.path.basename(path), "shared_memory")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    if _TRACKED:
        from multiprocessing import resource_tracker

        resource_tracker.unregister("/" + os.path.basename(path), "shared_memory")


class SharedBlock:
    """A mapped file; the base of the array that stands for the memory."""

    __slots__ = (
        "__array_interface__", "__weakref__", "_address", "_close", "_unmap", "descriptor", "identity", "name",
        "nbytes",
    )  # fmt: skip

    def __init__(self, descriptor: int, nbytes: int, name: str | None, identity: tuple[int, int] | None = None) -> None:
        system = _system()
        try:
            address = system.map(descriptor, nbytes)
        except OSError as error:
            system.close(descriptor)
            raise RuntimeError(
                f"unable to map {nbytes} bytes of shared memory: {error.strerror} ({error.errno})"
            ) from None
        self.descriptor = descriptor
        self.identity = system.identity(descriptor) if identity is None else identity
        self.name = name
        self.nbytes = nbytes
        self._address = address
        self._unmap = system.unmap
        self._close = system.close
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}

    def __del__(self) -> None:  # this may run when the module's names are gone
        if hasattr(self, "_close"):
            self._unmap(self._address, self.nbytes)
            if self.descriptor >= 0:
                self._close(self.descriptor)

    def link(self) -> str:
        """Another name of the same memory, for one message: it is there even when the maker has gone."""
        assert self.name is not None
        path = _new_name()
        _track(path)
        os.link(self.name, path)
        return path


_ARRAYS: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()
"""The arrays over the blocks that this process has, by the identity of the file: what arrives twice is mapped once."""


def _array_over(block: SharedBlock) -> Any:
    array = np.asarray(block)
    _ARRAYS[block.identity] = array
    return array


def new_shared(nbytes: int) -> Any:
    """An array of so many bytes, zeros, in memory that can be shared."""
    if sys.platform == "win32":
        return _array_over(SharedBlock(_system().create(nbytes), nbytes, None))
    if IN_BROWSER:
        raise NotImplementedError("memory is shared between processes, and a browser has no processes")
    if Strategy.current == "file_descriptor":
        return _array_over(SharedBlock(new_file(nbytes), nbytes, None))
    path = _new_name()
    _track(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.truncate(descriptor, nbytes)
    block = SharedBlock(descriptor, nbytes, path)
    _finalize(block, _remove, (path,), exitpriority=0)  # it runs at the end of child processes too
    _close(block)
    return _array_over(block)


def _close(block: SharedBlock) -> None:
    """A block that has a name needs no open file."""
    os.close(block.descriptor)
    block.descriptor = -1


def from_descriptor(descriptor: int, nbytes: int) -> Any:
    """The array over the memory behind an open file, which this process has been given."""
    status = os.fstat(descriptor)
    found = _ARRAYS.get((status.st_dev, status.st_ino))
    if found is not None:
        os.close(descriptor)
        return found
    return _array_over(SharedBlock(descriptor, nbytes, None))


def from_handle(handle: int, identity: tuple[int, int], nbytes: int) -> Any:
    """The array over the memory behind a handle of Windows, which this process has been given."""
    found = _ARRAYS.get(identity)
    if found is not None:
        _system().close(handle)
        return found
    return _array_over(SharedBlock(handle, nbytes, None, identity))


def from_link(path: str, nbytes: int) -> Any:
    """The array over the memory that a message named; the name was made for this one message."""
    descriptor = os.open(path, os.O_RDWR)
    status = os.fstat(descriptor)
    found = _ARRAYS.get((status.st_dev, status.st_ino))
    _track(path)  # as the sender did, whose tracker may be another one
    if found is not None:
        os.close(descriptor)
        _remove(path)
        return found
    block = SharedBlock(descriptor, nbytes, path)  # this process may pass the memory on under that name
    _finalize(block, _remove, (path,), exitpriority=0)
    _close(block)
    return _array_over(block)


def block_under(owner: Any) -> SharedBlock | None:
    """The block that an array stands for, if it is one."""
    base = owner.base
    return base if type(base) is SharedBlock else None
