"""Green contexts: streams whose work runs on some of a GPU's multiprocessors alone, by CUDA's driver."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char, c_int, c_uint, c_void_p

from .driver_functions import DriverFunctions

_MULTIPROCESSORS = 1
_DEFAULT_STREAM, _NON_BLOCKING = 1, 1


class _Resource(ctypes.Structure):
    """Some multiprocessors of a device, as the driver describes them."""

    _fields_ = (
        ("kind", c_int), ("inner", c_char * 92), ("count", c_uint), ("more", c_char * 36), ("following", c_void_p),
    )  # fmt: skip


_SIGNATURES = {
    "cuDeviceGetDevResource": (c_int, POINTER(_Resource), c_int),
    "cuDevSmResourceSplitByCount": (
        POINTER(_Resource), POINTER(c_uint), POINTER(_Resource), POINTER(_Resource), c_uint, c_uint,
    ),
    "cuDevResourceGenerateDesc": (POINTER(c_void_p), POINTER(_Resource), c_uint),
    "cuGreenCtxCreate": (POINTER(c_void_p), c_void_p, c_int, c_uint),
    "cuGreenCtxStreamCreate": (POINTER(c_void_p), c_void_p, c_uint, c_int),
}  # fmt: skip

_call = DriverFunctions(_SIGNATURES, "green contexts need CUDA 12.5")


class GreenStream:
    """A stream of a device that has some of its multiprocessors; `count` says how many.

    It stays until the process ends: the pool of memory remembers the streams that use a block.
    """

    def __init__(self, ordinal: int, wanted: int) -> None:
        whole, part, rest = _Resource(), _Resource(), _Resource()
        _call("cuDeviceGetDevResource", ordinal, byref(whole), _MULTIPROCESSORS)
        if wanted > whole.count:
            raise RuntimeError(f"GPU {ordinal} has {whole.count} multiprocessors: num_sms={wanted} is too many")
        groups = c_uint(1)
        _call("cuDevSmResourceSplitByCount", byref(part), byref(groups), byref(whole), byref(rest), 0, wanted)
        self.count = int(part.count)
        description, self._context, stream = c_void_p(), c_void_p(), c_void_p()
        _call("cuDevResourceGenerateDesc", byref(description), byref(part), 1)
        _call("cuGreenCtxCreate", byref(self._context), description, ordinal, _DEFAULT_STREAM)
        _call("cuGreenCtxStreamCreate", byref(stream), self._context, _NON_BLOCKING, 0)
        self.handle = int(stream.value or 0)
