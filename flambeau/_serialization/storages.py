"""Storages of one file: each is read once, checked against what the pickle says of it, and shared by its tensors."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

from .._core.arrays.byte_order import swap_bytes
from .._core.device import CPU, META
from .._core.dtype import dtype
from .._core.storage import UntypedStorage, storage_of
from .byteorder import swap_later
from .locations import goes_to_meta, restorer
from .storage_types import UNTYPED, StorageType

Fetch = Callable[[str, int], Any]
"""Gives the bytes of the storage with a key as an array, if it has the given size."""


def storage_over(memory: Any) -> UntypedStorage:
    """The storage whose bytes are `memory`."""
    return storage_of(memory, CPU)


def checked_bytes(storage_type: Any, numel: Any) -> int:
    """The size of a storage of `numel` elements."""
    if not isinstance(storage_type, StorageType) or type(numel) is not int or not 0 <= numel < 2**60:
        raise pickle.UnpicklingError("a storage has no type or no size: the file is corrupt")
    return numel * element_of(storage_type).itemsize


def element_of(storage_type: StorageType) -> dtype:
    """The dtype of a storage type of a file."""
    try:
        return storage_type.dtype
    except KeyError as error:
        raise pickle.UnpicklingError(
            f"the file has a storage of type torch.{storage_type.name}: {error.args[0]}"
        ) from None


class Storages:
    """What `persistent_load` answers from."""

    def __init__(self, fetch: Fetch, map_location: Any, *, order: str = "little", skip: bool = False) -> None:
        self.fetch = fetch
        self.map_location = map_location
        self.restore = restorer(map_location)
        self.order = order
        self.skip = skip
        self.loaded: dict[str, tuple[UntypedStorage, int]] = {}

    def persistent_load(self, saved_id: Any) -> Any:
        """The storage that a persistent id of a zip archive means."""
        if type(saved_id) is not tuple or len(saved_id) != 5 or as_text(saved_id[0]) != "storage":
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed: the file is corrupt")
        _, storage_type, key, location, numel = saved_id
        return self.get(storage_type, key, location, numel)

    def get(self, storage_type: Any, key: Any, location: Any, numel: Any) -> Any:
        """The storage with this key, read at the first call."""
        nbytes = checked_bytes(storage_type, numel)
        key, location = as_text(key), as_text(location)
        if key not in self.loaded:
            self.loaded[key] = self._read(storage_type, key, location, nbytes), nbytes
        storage, size = self.loaded[key]
        if nbytes > size:
            raise pickle.UnpicklingError(f"storage {key[:40]!r} has two sizes: the file is corrupt")
        return storage_type.wrap(storage)

    def _read(self, storage_type: StorageType, key: str, location: str, nbytes: int) -> UntypedStorage:
        if goes_to_meta(self.map_location, location):
            return UntypedStorage(nbytes, device=META)
        storage = storage_over(self.fetch(key, nbytes))
        if self.order != sys.byteorder and not self.skip:
            if storage_type.name == UNTYPED:
                swap_later(storage)
            else:
                swap_bytes(storage.bytes(), storage_type.dtype)
        return self.restore(storage, location)


def as_text(value: Any) -> str:
    """A key or location; Python 2 wrote some as bytes, and files of the first years had numbers."""
    if type(value) is bytes:
        return value.decode("latin1")
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise pickle.UnpicklingError(
            f"a storage has a {type(value).__name__} for a key or location: the file is corrupt"
        )
    return value
