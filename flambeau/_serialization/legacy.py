"""The format of PyTorch 0.1.10 to 1.5: pickles one after another, then the contents of the storages.

A magic number, a protocol version, facts about the writer's machine, the object, the keys of its storages; then for
each key the number of elements and the elements, little-endian.
"""

from __future__ import annotations

import inspect
import pickle
import struct
import sys
import warnings
from typing import Any

import numpy as np

from .._core.arrays.byte_order import swap_bytes
from .._core.device import CPU, META
from .._core.storage import UntypedStorage, adopt_array
from .globals import SafeGlobals
from .locations import goes_to_meta, restorer
from .rebuild import data_comes_later
from .storage_types import StorageType
from .storages import as_text, checked_bytes, element_of, storage_over
from .unpickler import Machine

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


class SourceChangeWarning(Warning):
    """The source of a pickled class is not what it was when the file was written.

    Example:
        >>> issubclass(torch.serialization.SourceChangeWarning, Warning)
        True
    """


class StackedStorages:
    """Storages whose contents come after the object that refers to them."""

    def __init__(self, available: int, map_location: Any) -> None:
        self.available = available
        self.map_location = map_location
        self.restore = restorer(map_location)
        self.loaded: dict[str, tuple[UntypedStorage, StorageType]] = {}
        self.views: dict[str, UntypedStorage] = {}

    def persistent_load(self, saved_id: Any) -> Any:
        """A storage, part of one, or the class of a module, which files of old give with its source."""
        if type(saved_id) is not tuple or not saved_id:
            raise pickle.UnpicklingError("a persistent id is no tuple: the file is corrupt")
        kind = as_text(saved_id[0])
        if kind == "module" and len(saved_id) == 4:
            _, cls, _, source = saved_id
            _warn_of_changed_source(cls, source)
            return cls
        if kind != "storage" or len(saved_id) not in (5, 6):
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed: the file is corrupt")
        _, storage_type, key, location, numel, *view = saved_id
        storage = self._storage(storage_type, as_text(key), as_text(location), checked_bytes(storage_type, numel))
        if view and view[0] is not None:
            storage = self._view(storage, storage_type, view[0])
        return storage_type.wrap(storage)

    def _storage(self, storage_type: StorageType, key: str, location: str, nbytes: int) -> UntypedStorage:
        if key not in self.loaded:
            if goes_to_meta(self.map_location, location):
                self.loaded[key] = UntypedStorage(nbytes, device=META), storage_type
            else:
                self.available -= nbytes
                if self.available < 0:
                    raise pickle.UnpicklingError(
                        f"storage {key[:40]!r} has {nbytes} bytes, which the file does not have: it is truncated, "
                        "corrupt or malicious"
                    )
                memory = np.zeros(nbytes, np.uint8)
                self.loaded[key] = self.restore(storage_over(memory), location), storage_type
        return self.loaded[key][0]

    def _view(self, storage: UntypedStorage, storage_type: StorageType, view: Any) -> UntypedStorage:
        if type(view) is not tuple or len(view) != 3 or not all(type(each) is int for each in view[1:]):
            raise pickle.UnpicklingError("a view of a storage has no key, offset and size: the file is corrupt")
        key, (offset, size) = as_text(view[0]), view[1:]
        item = element_of(storage_type).itemsize
        if not 0 <= offset * item <= (offset + size) * item <= storage.nbytes():
            raise pickle.UnpicklingError("a view of a storage is not inside it: the file is corrupt")
        if key not in self.views:
            part = storage.bytes()[offset * item : (offset + size) * item]
            self.views[key] = storage_over(adopt_array(part))
        return self.views[key]

    def fill(self, data: Any, position: int, keys: Any) -> int:
        """Read the contents of the storages in the order of `keys`; returns the position behind them."""
        if type(keys) is not list or sorted(map(as_text, keys)) != sorted(self.loaded):
            raise pickle.UnpicklingError("the list of storages does not match the object's: the file is corrupt")
        for key in map(as_text, keys):
            storage, storage_type = self.loaded[key]
            position = fill_storage(storage, storage_type, data, position)
        return position


def fill_storage(storage: UntypedStorage, storage_type: StorageType, data: Any, position: int) -> int:
    """Read a length and that many elements from `data`; returns the position behind them."""
    content, position = counted_bytes(data, position, element_of(storage_type).itemsize)
    if len(content) != storage.nbytes():
        raise pickle.UnpicklingError("the size of a storage is not what its tensors say: the file is corrupt")
    if storage.device is META:
        return position
    memory = storage.bytes() if storage.device is CPU else np.empty(len(content), np.uint8)
    memory[:] = content
    if sys.byteorder == "big":
        swap_bytes(memory, element_of(storage_type))
    if storage.device is not CPU:
        storage.copy_(storage_over(memory))
    return position


def counted_bytes(data: Any, position: int, itemsize: int) -> tuple[Any, int]:
    """The bytes of elements that their number precedes, and the position behind them."""
    start = position + 8
    if start > len(data):
        raise pickle.UnpicklingError("pickle data was truncated: a storage is missing")
    (count,) = struct.unpack("<q", data[position:start])
    end = start + count * itemsize
    if count < 0 or end > len(data):
        raise pickle.UnpicklingError(
            f"unexpected EOF, expected {max(end - len(data), 0)} more bytes. The file might be corrupted."
        )
    return np.frombuffer(data, np.uint8, end - start, start) if end > start else np.empty(0, np.uint8), end


def _warn_of_changed_source(cls: Any, source: Any) -> None:
    if not isinstance(cls, type) or cls.__module__.startswith("flambeau") or not isinstance(source, str):
        return
    try:
        current = inspect.getsource(cls)
    except (OSError, TypeError):
        return
    if source and current != source:
        warnings.warn(
            f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed since the file was saved. The "
            "loaded object has today's code.",
            SourceChangeWarning,
            stacklevel=2,
        )


def load_stacked(data: Any, options: Any) -> tuple[Any, int]:
    """The object in a stacked-pickle file, and the position behind it."""
    machine = Machine(data, SafeGlobals(), encoding=options.pickle_arguments["encoding"])
    if machine.load() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file? It does not look like one that torch.save wrote.")
    version = machine.load()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version if type(version) is int else '?'}")
    machine.load()  # facts about the writer's machine
    storages = StackedStorages(len(data), options.map_location)
    main = options.machine(data, storages.persistent_load, position=machine.position)
    with data_comes_later():
        result = main.load()
        machine.position = main.position
        keys = machine.load()
        end = storages.fill(data, machine.position, keys)
    return result, end
