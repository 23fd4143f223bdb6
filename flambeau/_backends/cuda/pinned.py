"""Page-locked memory of the host, from and to which a GPU copies by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.storage import owner_of


def pinned_copy(array: Any) -> Any:
    """A copy of a host array in page-locked memory."""
    import cupy

    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    copy = np.ndarray(array.shape, array.dtype, np.frombuffer(memory, np.uint8, array.nbytes))
    copy[...] = array
    return copy


def is_pinned(array: Any) -> bool:
    """Whether a host array lies in memory that `pinned_copy` made."""
    base = owner_of(array).base
    return type(getattr(base, "obj", base)).__name__ == "PinnedMemoryPointer"
