"""Numbers in the bytes of a buffer, in this machine's order of bytes or in the other."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..dtype import dtype

_ORDERS = ("big", "little", "native")


def swap_bytes(memory: Any, element: dtype) -> None:
    """Reverse the bytes of every number in an array of bytes, in place; a complex number is two."""
    size = element.itemsize // 2 if element.is_complex else element.itemsize
    if size > 1:
        whole = memory[: memory.nbytes // size * size].view(np.dtype(f"u{size}"))
        whole.byteswap(inplace=True)


def bytes_of_buffer(buffer: Any, byte_order: str | None, count: int, offset: int, element: dtype | None) -> Any:
    """A copy of the bytes of `count` numbers of a buffer, of all from `offset` on if `count` is negative, in this
    machine's order.
    """
    if element is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    size, available = element.itemsize, memoryview(buffer).nbytes
    if size > 1 or element.name == "bool":
        if byte_order is None:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2): 'big', 'little' or 'native'")
        if byte_order not in _ORDERS:
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= available:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({available}), but got {offset}"
        )
    if count < 0:
        if (available - offset) % size:
            raise ValueError(f"buffer size ({available}) must be a multiple of element size ({size}) after the offset")
        count = (available - offset) // size
    if offset + count * size > available:
        raise ValueError(
            f"buffer has only {(available - offset) // size} elements after offset {offset}, but specified a size of "
            f"{count}"
        )
    memory: Any = np.frombuffer(buffer, np.uint8)[offset : offset + count * size].copy()
    if byte_order not in (None, "native", sys.byteorder):
        swap_bytes(memory, element)
    return memory != 0 if element.name == "bool" else memory
