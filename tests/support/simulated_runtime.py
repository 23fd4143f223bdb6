"""Functions of the runtime library for the simulated device: what it is, and handles of memory and marks.

Handles work within one process: another one has other memory.
"""

from __future__ import annotations

import struct
from typing import Any

PROPERTIES: dict[str, Any] = {
    "name": b"Simulated", "major": 9, "minor": 0, "totalGlobalMem": 4 << 30, "multiProcessorCount": 4,
    "maxThreadsPerMultiProcessor": 2048, "maxThreadsPerBlock": 1024, "warpSize": 32, "l2CacheSize": 1 << 20,
    "sharedMemPerBlock": 48 << 10, "regsPerMultiprocessor": 1 << 16, "integrated": 0, "pciBusID": 0, "pciDeviceID": 0,
    "pciDomainID": 0,
}  # fmt: skip
OPENED: list[int] = []
"""The pieces of memory whose handles are open."""


def getDeviceProperties(ordinal: int) -> dict[str, Any]:
    return dict(PROPERTIES)


def deviceSynchronize() -> None: ...


def ipcGetMemHandle(pointer: int) -> bytes:
    return struct.pack("q", pointer)


def ipcOpenMemHandle(handle: bytes) -> int:
    (pointer,) = struct.unpack("q", handle)
    if pointer in OPENED:
        raise RuntimeError("cudaErrorAlreadyMapped")
    OPENED.append(pointer)
    return int(pointer)


def ipcCloseMemHandle(pointer: int) -> None:
    OPENED.remove(pointer)


ipcGetEventHandle = ipcGetMemHandle


def ipcOpenEventHandle(handle: bytes) -> int:
    return int(struct.unpack("q", handle)[0])


def eventQuery(event: int) -> int:
    return 0


def eventRecord(event: int, stream: int) -> None: ...


def eventSynchronize(event: int) -> None: ...


def eventDestroy(event: int) -> None: ...
