"""Memory of the device for other array libraries, and theirs for tensors, by DLPack's structures."""

from __future__ import annotations

from typing import Any

from ..arrays.array import DeviceArray, over, window
from ..runtime.driver import driver


def exported(array: DeviceArray, stream: int | None) -> Any:
    """A capsule with the memory of an array, for work in the queue `stream`; -1: nobody waits for anybody."""
    return driver().seen(array).__dlpack__(stream=stream)


def queue() -> int | None:
    """The queue in use, as the protocol numbers it: None is the one that is always there."""
    return driver().stream() or None


def imported(carrier: Any) -> DeviceArray:
    """An array on the memory that a capsule is about; the carrier has that, and says where it is."""
    own = driver()
    found = own.functions.from_dlpack(carrier)
    memory, pointer = own.adopted(found)
    last = sum([(size - 1) * step for size, step in zip(found.shape, found.strides, strict=True)]) if found.size else 0
    whole = over(memory, pointer, (last // found.itemsize + 1 if found.size else 0,), found.dtype)
    return window(whole, found.shape, found.dtype, 0, found.strides)
