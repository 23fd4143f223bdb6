"""Memory for whole parameters, which is there only while they are needed.

Its addresses stay: a graph that has saved a window on a parameter finds it again after the memory was given back to the
operating system and filled anew.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import numpy as np

from ..._core.kind import Kind
from ..._core.tensor import Tensor

_ALIGNMENT = 64


class Room:
    """Room for tensors of given shapes and kinds."""

    def __init__(self, forms: Sequence[tuple[tuple[int, ...], Kind]]) -> None:
        self._is_host = all(kind.is_cpu for _, kind in forms)
        self._memory: mmap.mmap | None = None
        self.tensors: list[Tensor] = []
        if not self._is_host:
            for shape, kind in forms:
                array = kind.backend.asarray(np.empty(shape, kind.dtype.numpy)) if not kind.dataless else None
                assert array is not None, "parameters without data cannot be gathered"
                self.tensors.append(Tensor._from_parts((array, kind, [0, None])))
            return
        starts, end = [], 0
        for shape, kind in forms:
            starts.append(end)
            end += -(-math.prod(shape) * kind.dtype.numpy.itemsize // _ALIGNMENT) * _ALIGNMENT
        self._memory = mmap.mmap(-1, max(end, 1))
        whole = np.frombuffer(self._memory, np.uint8)
        for (shape, kind), start in zip(forms, starts, strict=True):
            array_type = kind.dtype.numpy
            window = whole[start : start + math.prod(shape) * array_type.itemsize].view(array_type).reshape(shape)
            self.tensors.append(Tensor._from_parts((window, kind, [0, None])))

    def release(self) -> None:
        """Give the memory back; the elements are lost."""
        if self._memory is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)
