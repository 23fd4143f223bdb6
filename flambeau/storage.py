"""The memory under tensors, under the names of `torch.storage`."""

from __future__ import annotations

import io
import warnings
from typing import Any

from ._core.names.legacy_storages import _dtype_to_storage_type_map, _LegacyStorage, _storage_type_to_dtype_map
from ._core.storage import UntypedStorage
from ._core.typed_storage import TypedStorage

__all__ = [
    "TypedStorage",
    "UntypedStorage",
    "_LegacyStorage",
    "_dtype_to_storage_type_map",
    "_storage_type_to_dtype_map",
]

StorageBase = _StorageBase = _UntypedStorage = UntypedStorage
_TypedStorage = TypedStorage


def _load_from_bytes(b: bytes) -> Any:
    """What `save` wrote into these bytes."""
    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


def _as_bytes(storage: Any) -> tuple[Any, ...]:
    """How PyTorch pickles a storage: as the bytes of a file of it."""
    from .serialization import save

    content = io.BytesIO()
    save(storage, content, _use_new_zipfile_serialization=False)
    return _load_from_bytes, (content.getvalue(),)


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Say that typed storages are going to go."""
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only class",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
