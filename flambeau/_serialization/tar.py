"""The oldest format, before PyTorch 0.1.10: a tar archive of storages, of tensors on them, and of the object itself."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from typing import Any

from .._core.storage import adopt_array
from .globals import SafeGlobals
from .legacy import counted_bytes
from .locations import restorer
from .rebuild import rebuild_tensor
from .storage_types import StorageType
from .storages import as_text, element_of, storage_over
from .unpickler import Machine

_MOST_DIMENSIONS = 64


def _members(data: Any) -> dict[str, bytes]:
    """The three files of the archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            found = {}
            for name in ("storages", "tensors", "pickle"):
                member = tar.getmember(name)
                if not member.isreg() or member.issparse() or member.size > len(data):
                    raise tarfile.TarError(f"{name} is no plain file")
                file = tar.extractfile(member)
                found[name] = b"" if file is None else file.read()
            return found
    except Exception as error:
        raise RuntimeError(
            f"failed reading the tar archive: {error}. The file is corrupted, or was not written by torch.save."
        ) from error


def _count(machine: Machine) -> int:
    count = machine.load()
    if type(count) is not int or not 0 <= count <= machine.size:
        raise pickle.UnpicklingError("the number of objects is impossible: the file is corrupt")
    return count


def _entry(machine: Machine) -> tuple[Any, Any, Any]:
    entry = machine.load()
    if type(entry) is not tuple or len(entry) != 3:
        raise pickle.UnpicklingError("an entry of the archive has no three parts: the file is corrupt")
    return entry


def _read_storages(content: bytes, map_location: Any, encoding: str) -> dict[str, Any]:
    machine = Machine(content, SafeGlobals(), encoding=encoding)
    restore = restorer(map_location)
    found: dict[str, Any] = {}
    for _ in range(_count(machine)):
        key, location, storage_type = _entry(machine)
        if not isinstance(storage_type, StorageType):
            raise pickle.UnpicklingError("a storage has no type: the file is corrupt")
        memory, machine.position = counted_bytes(content, machine.position, element_of(storage_type).itemsize)
        found[as_text(key)] = storage_type.wrap(restore(storage_over(memory.copy()), as_text(location)))
    views = machine.load()
    if type(views) is not list:
        raise pickle.UnpicklingError("the list of views is missing: the file is corrupt")
    for view in views:
        _add_view(found, view)
    return found


def _add_view(found: dict[str, Any], view: Any) -> None:
    if type(view) is not tuple or len(view) != 4 or not all(type(each) is int for each in view[2:]):
        raise pickle.UnpicklingError("a view of a storage has no key, root, offset and size: the file is corrupt")
    root = found[as_text(view[1])]
    offset, size, item = view[2], view[3], root.element_size()
    if not 0 <= offset * item <= (offset + size) * item <= root.nbytes():
        raise pickle.UnpicklingError("a view of a storage is not inside it: the file is corrupt")
    part = adopt_array(root.untyped().bytes()[offset * item : (offset + size) * item])
    found[as_text(view[0])] = type(root)(wrap_storage=storage_over(part), dtype=root.dtype)


def _read_tensors(content: bytes, storages: dict[str, Any], encoding: str) -> dict[str, Any]:
    machine = Machine(content, SafeGlobals(), encoding=encoding)
    found: dict[str, Any] = {}
    for _ in range(_count(machine)):
        key, storage_key, _ = _entry(machine)
        at = machine.position
        (dimensions,) = struct.unpack("<i4x", content[at : at + 8])
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise pickle.UnpicklingError("a tensor has an impossible number of dimensions: the file is corrupt")
        numbers = struct.unpack_from(f"<{2 * dimensions + 1}q", content, at + 8)
        machine.position = at + 8 + 8 * len(numbers)
        size, stride, offset = numbers[:dimensions], numbers[dimensions:-1], numbers[-1]
        found[as_text(key)] = rebuild_tensor(storages[as_text(storage_key)], offset, size, stride)
    return found


def load_tar(data: Any, options: Any) -> Any:
    """The object in a tar archive."""
    members = _members(data)
    encoding = options.pickle_arguments["encoding"]
    try:
        objects = _read_storages(members["storages"], options.map_location, encoding)
        objects |= _read_tensors(members["tensors"], objects, encoding)
    except (KeyError, struct.error) as error:
        raise pickle.UnpicklingError(f"the file is corrupt: {type(error).__name__} {error}") from error

    def persistent_load(saved_id: Any) -> Any:
        if type(saved_id) is tuple and saved_id:
            return saved_id[0]  # the class of a module, with its source
        key = as_text(saved_id)
        if key not in objects:
            raise pickle.UnpicklingError(f"the file has no object {key[:40]!r}: it is corrupt")
        return objects[key]

    return options.machine(members["pickle"], persistent_load).load()
