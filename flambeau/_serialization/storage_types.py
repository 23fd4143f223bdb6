"""`StorageType`: what `torch.FloatStorage` means in a file."""

from __future__ import annotations

from typing import Any

from .._core.dtype import (
    FLOAT8,
    LEGACY_NAMES,
    complex32,
    dtype,
    float8_e8m0fnu,
    is_packed,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .._core.storage import UntypedStorage
from .._core.typed_storage import TypedStorage

UNTYPED = "UntypedStorage"
_DTYPES: dict[str, dtype] = {f"{name}Storage": element for element, name in LEGACY_NAMES.items()}


class StorageType:
    """The class of storages of one dtype; `UntypedStorage` is the one of bytes.

    Args:
        name (str): the name of the class.

    Example:
        >>> torch.serialization.StorageType("FloatStorage").dtype
        torch.float32
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        if self.name == UNTYPED:
            return uint8
        found = _DTYPES.get(self.name)
        if found is None:
            raise KeyError(f"Flambeau has no element type for torch.{self.name}")
        return found

    _dtype = dtype

    def wrap(self, storage: UntypedStorage) -> Any:
        """`storage` as an object of this type."""
        return storage if self.name == UNTYPED else TypedStorage(wrap_storage=storage, dtype=self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


OF_DTYPE = {element: StorageType(name) for name, element in _DTYPES.items()}
_QUANTIZED = frozenset({"qint8", "quint8", "qint32", "quint4x2", "quint2x4"})
_WITHOUT_CLASS = frozenset({uint16, uint32, uint64, complex32, *FLOAT8}) | {
    each for each in LEGACY_NAMES if each.name not in _QUANTIZED and (each is float8_e8m0fnu or is_packed(each))
}


def has_storage_class(element: dtype) -> bool:
    """Whether PyTorch has a storage class for this dtype; tensors of others are written over untyped storages."""
    return element not in _WITHOUT_CLASS
