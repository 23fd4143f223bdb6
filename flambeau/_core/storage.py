"""`UntypedStorage`: the memory that a tensor and its views share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import CPU, device


def owner_of(array: Any) -> Any:
    """The array that `array` is a view of in the end: the one that stands for the whole memory."""
    base = array.base
    while type(base) is np.ndarray:
        array = base
        base = array.base
    return array


class UntypedStorage:
    """A block of bytes. Tensors are strided windows on it; two tensors share memory if their storages are equal."""

    __slots__ = ("_owner", "device")

    def __init__(self, size: int = 0, *, device: device = CPU) -> None:
        self._owner: Any = np.zeros(size, np.uint8)
        self.device = device

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._owner.ctypes.data  # type: ignore[no-any-return]

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._owner.nbytes  # type: ignore[no-any-return]

    size = nbytes
    __len__ = nbytes

    def bytes(self) -> Any:
        """The memory as a one-dimensional array of bytes that shares it."""
        flat = self._owner.reshape(-1) if self._owner.flags.c_contiguous else np.ravel(self._owner, order="K")
        return flat.view(np.uint8)

    def __getitem__(self, index: Any) -> Any:
        return self.bytes()[index].tolist() if isinstance(index, slice) else int(self.bytes()[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.bytes()[index] = value

    def tolist(self) -> list[int]:
        """The bytes as Python ints."""
        return self.bytes().tolist()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._owner is other._owner

    def __hash__(self) -> int:
        return id(self._owner)

    @property
    def _cdata(self) -> int:
        return id(self._owner)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def storage_of(array: Any, place: device = CPU) -> UntypedStorage:
    """The storage under `array`."""
    storage: UntypedStorage = object.__new__(UntypedStorage)
    storage._owner = owner_of(array)
    storage.device = place
    return storage
