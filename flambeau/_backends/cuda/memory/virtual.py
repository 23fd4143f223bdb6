"""Addresses of a GPU and the memory behind them, by CUDA's driver: what segments that grow are made of."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_size_t, c_ubyte, c_uint64, c_void_p
from typing import Any

from ..runtime.compile_queue import COMPILE_QUEUE
from ..runtime.driver_functions import DriverFunctions

_NO_MEMORY = 2
_IS_SUPPORTED = 102
"""The number of the attribute that says whether a device does this."""
_PINNED, _ON_DEVICE, _READ_AND_WRITE = 1, 1, 3


class _Location(ctypes.Structure):
    _fields_ = (("kind", c_int), ("ordinal", c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("kind", c_int), ("handles", c_int), ("location", _Location), ("metadata", c_void_p), ("flags", c_ubyte * 8),
    )  # fmt: skip


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", c_int))


_SIGNATURES = {
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuMemAddressReserve": (POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemAddressFree": (c_uint64, c_size_t),
    "cuMemCreate": (POINTER(c_uint64), c_size_t, POINTER(_Properties), c_uint64),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemSetAccess": (c_uint64, c_size_t, POINTER(_Access), c_size_t),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemRelease": (c_uint64,),
}

_call = DriverFunctions(_SIGNATURES, "segments that grow need CUDA 10.2")


class VirtualMemory:
    """The addresses of one GPU."""

    def __init__(self, ordinal: int, runtime: Any) -> None:
        self._ordinal = ordinal
        self._runtime = runtime
        self._supported: bool | None = None

    def is_supported(self) -> bool:
        """Whether the device can do this."""
        if self._supported is None:
            found = c_int()
            _call("cuDeviceGetAttribute", byref(found), _IS_SUPPORTED, self._ordinal)
            self._supported = bool(found.value)
        return self._supported

    def reserve(self, nbytes: int) -> int:
        """Addresses that nobody else gets."""
        found = c_uint64()
        _call("cuMemAddressReserve", byref(found), nbytes, 0, 0, 0)
        return int(found.value)

    def release(self, pointer: int, nbytes: int) -> None:
        """Let others have addresses that `reserve` gave."""
        _call("cuMemAddressFree", pointer, nbytes)

    def map(self, pointer: int, nbytes: int, piece: int) -> bool:
        """Put memory behind addresses, in pieces; False: the device has not so much, and nothing has changed."""
        properties = _Properties(_PINNED, 0, _Location(_ON_DEVICE, self._ordinal))
        for done in range(0, nbytes, piece):
            handle = c_uint64()
            status = _call.status_of("cuMemCreate", byref(handle), piece, byref(properties), 0)
            if status:
                self.unmap(pointer, done, piece)
                if status == _NO_MEMORY:
                    return False
                raise RuntimeError(f"CUDA error {status}: cuMemCreate failed")
            try:
                _call("cuMemMap", pointer + done, piece, 0, handle, 0)
            finally:
                _call("cuMemRelease", handle)  # the memory lives as long as it is mapped
        readers = self._readers()
        _call("cuMemSetAccess", pointer, nbytes, readers, len(readers))
        return True

    def unmap(self, pointer: int, nbytes: int, piece: int) -> None:
        """Take the memory back from behind addresses."""
        COMPILE_QUEUE.catch_up()
        for done in range(0, nbytes, piece):
            _call("cuMemUnmap", pointer + done, piece)

    def _readers(self) -> Any:
        """The devices that may read and write: this one, and those that can reach it."""
        can_reach = self._runtime.deviceCanAccessPeer
        found = [
            each
            for each in range(self._runtime.getDeviceCount())
            if each == self._ordinal or can_reach(each, self._ordinal)
        ]
        return (_Access * len(found))(*[_Access(_Location(_ON_DEVICE, each), _READ_AND_WRITE) for each in found])
