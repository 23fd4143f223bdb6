"""CUDA's driver with other answers about the GPU: libraries then choose their kernels as for another one.

How many multiprocessors a GPU has, how large its caches are and how wide its memory is differs from one GPU of an
architecture to the next, and libraries choose by it. `answer_as` overwrites the beginning of the driver's functions
that tell them, in this process, before anything has asked. For x86-64 under Linux.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np

GPUS: dict[str, Mapping[str, int]] = {
    "H100 PCIe": {"multiprocessors": 114, "memory": 80 << 30, "bus": 5120, "clock": 1_755_000, "cache": 50 << 20},
    "H20": {"multiprocessors": 78, "memory": 96 << 30, "bus": 6144, "clock": 1_980_000, "cache": 60 << 20},
}
"""Other GPUs of Hopper's architecture, by what their makers publish."""

_ATTRIBUTES = {"clock": 13, "multiprocessors": 16, "bus": 37, "cache": 38}
_MOST_ATTRIBUTES = 256
_WRITABLE = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
_PAGE = 4096
_kept: list[Any] = []
"""What the overwritten functions read and run."""


def answer_as(name: str) -> None:
    """Let the driver answer for one of `GPUS` from now on, wherever a GPU is asked about."""
    wanted = GPUS[name]
    driver: Any = ctypes.CDLL("libcuda.so.1")
    if driver.cuInit(0):
        raise RuntimeError("CUDA's driver cannot be started")
    answers = np.zeros(_MOST_ATTRIBUTES, np.int32)
    value = ctypes.c_int()
    for attribute in range(_MOST_ATTRIBUTES):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0:
            answers[attribute] = value.value
    for what, attribute in _ATTRIBUTES.items():
        answers[attribute] = wanted[what]
    title = np.frombuffer(f"NVIDIA {name}".encode().ljust(32, b"\0"), np.uint64).copy()
    _kept.extend((answers, title))
    _overwrite(driver.cuDeviceGetAttribute, _attribute_code(answers.ctypes.data))
    for function in (driver.cuDeviceTotalMem_v2, driver.cuDeviceTotalMem):
        _overwrite(function, _memory_code(wanted["memory"]))
    _overwrite(driver.cuDeviceGetName, _name_code(title))


def _attribute_code(table: int) -> bytes:
    """`*rdi = table[esi]; return 0`, or 1 for an attribute that there is not."""
    found = b"\x48\xb8" + table.to_bytes(8, "little") + b"\x89\xf6\x8b\x04\xb0\x89\x07\x31\xc0\xc3"
    check = b"\x81\xfe" + (_MOST_ATTRIBUTES - 1).to_bytes(4, "little") + b"\x77" + len(found).to_bytes(1, "little")
    return check + found + b"\xb8\x01\x00\x00\x00\xc3"


def _memory_code(nbytes: int) -> bytes:
    """`*rdi = nbytes; return 0`."""
    return b"\x48\xb8" + nbytes.to_bytes(8, "little") + b"\x48\x89\x07\x31\xc0\xc3"


def _name_code(title: Any) -> bytes:
    """Write 32 bytes to `rdi`; return 0."""
    parts = (
        b"\x48\xb8" + int(part).to_bytes(8, "little") + b"\x48\x89\x47" + bytes((8 * place,))
        for place, part in enumerate(title)
    )
    return b"".join(parts) + b"\x31\xc0\xc3"


def _overwrite(function: Any, code: bytes) -> None:
    """Let a function begin with a jump to `code`."""
    room = mmap.mmap(-1, _PAGE, prot=_WRITABLE)
    room.write(code)
    _kept.append(room)
    place = ctypes.addressof(ctypes.c_char.from_buffer(room))
    begin = ctypes.cast(function, ctypes.c_void_p).value or 0
    page = begin & -_PAGE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    if protect(ctypes.c_void_p(page), ctypes.c_size_t(begin + 12 - page), _WRITABLE):
        raise OSError(ctypes.get_errno(), "the driver's code cannot be changed")
    ctypes.memmove(begin, b"\x48\xb8" + place.to_bytes(8, "little") + b"\xff\xe0", 12)
