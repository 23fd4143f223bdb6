"""Host arrays in page-locked memory."""

from __future__ import annotations

from typing import Any

from ..runtime.driver import driver
from .host import pinned_memory


def pinned_copy(array: Any) -> Any:
    """A copy of a host array in page-locked memory."""
    copy = driver().host_pool.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_pinned(array: Any) -> bool:
    """Whether a host array lies in page-locked memory."""
    return pinned_memory(array) is not None
