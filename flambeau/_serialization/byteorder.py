"""Storages written on machines of the other byte order."""

from __future__ import annotations

import weakref

from .._core.arrays.byte_order import swap_bytes
from .._core.dtype import dtype
from .._core.storage import UntypedStorage

_PENDING: weakref.WeakSet[UntypedStorage] = weakref.WeakSet()
"""Storages of bytes as a foreign archive has them: the first tensor on one tells the size of its numbers."""


def swap_later(storage: UntypedStorage) -> None:
    """Remember that the numbers in `storage` have the other byte order, whatever their type."""
    _PENDING.add(storage)


def swap_if_pending(storage: UntypedStorage, element: dtype) -> None:
    """Bring a remembered storage to this machine's byte order, once."""
    if storage in _PENDING:
        _PENDING.discard(storage)
        swap_bytes(storage.bytes(), element)
