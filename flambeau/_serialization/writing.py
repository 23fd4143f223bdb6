"""Saving: a pickler that writes PyTorch's names, and the two containers that PyTorch reads."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._core.arrays.byte_order import swap_bytes
from .._core.arrays.lazy_signs import is_conj, is_neg
from .._core.arrays.sparse import COO
from .._core.backend import to_host
from .._core.device import CPU, META, device, layout, memory_format
from .._core.dtype import dtype
from .._core.generator import Generator
from .._core.pickling import warn_of_hooks
from .._core.qscheme import qscheme
from .._core.quantized import QuantizedTensor
from .._core.size import Size
from .._core.sparse import SparseTensor, dense_tensor
from .._core.storage import UntypedStorage
from .._core.tensor import Tensor, wrap
from .._core.typed_storage import TypedStorage
from .._dispatch.public.namespaces import is_unbound
from . import rebuild, settings
from .archive import ArchiveWriter, write_all
from .legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from .locations import location_tag
from .names import torch_name
from .storage_types import OF_DTYPE, UNTYPED, StorageType, has_storage_class

_FORMAT_VERSION = b"1"
_ARCHIVE_VERSION = b"3\n"
_UNTYPED = StorageType(UNTYPED)
_ATOMS = frozenset({str, float, int, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple, OrderedDict})


class SavedStorages:
    """The storages that an object refers to, each once, in the order of their first appearance."""

    def __init__(self, *, stacked: bool = False) -> None:
        self.stacked = stacked
        self.found: dict[int, tuple[str, UntypedStorage, dtype | None]] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """How the pickle refers to a storage; None for any other object."""
        if isinstance(obj, TypedStorage):
            storage, element = obj.untyped(), obj.dtype
            storage_type = OF_DTYPE[element] if has_storage_class(element) else _UNTYPED
        elif isinstance(obj, UntypedStorage):
            storage, storage_type = obj, _UNTYPED
        else:
            return None
        numel = storage.nbytes() // storage_type.dtype.itemsize
        if storage._cdata not in self.found:
            number = str(storage._cdata) if self.stacked else str(len(self.found))
            self.found[storage._cdata] = number, storage, None if storage_type is _UNTYPED else storage_type.dtype
        key = self.found[storage._cdata][0]
        reference = ("storage", storage_type, key, location_tag(storage), numel)
        return (*reference, None) if self.stacked else reference

    def typed(self, storage: UntypedStorage, element: dtype) -> bool:
        """Whether tensors of this dtype can refer to `storage` by its class: the first reference decides which."""
        if not has_storage_class(element) or storage.nbytes() % element.itemsize:
            return False
        known = self.found.get(storage._cdata)
        return known is None or known[2] is element

    def contents(self) -> list[tuple[str, Any, dtype | None]]:
        """Key, bytes and dtype of each storage."""
        return [(key, to_host(storage.bytes()), element) for key, storage, element in self.found.values()]


if TYPE_CHECKING:

    class _PythonPickler:
        """What `pickle._Pickler`, the pickler in Python, has beside what typeshed tells."""

        memo: dict[int, tuple[int, Any]]
        proto: int
        dispatch: ClassVar[dict[type, Any]]
        write: Callable[[bytes], None]

        def __init__(self, file: Any, protocol: int) -> None: ...
        def dump(self, obj: Any) -> None: ...
        def get(self, i: int) -> bytes: ...
        def memoize(self, obj: Any) -> None: ...
        def save(self, obj: Any, save_persistent_id: bool = True) -> None: ...
        def save_global(self, obj: Any, name: str | None = None) -> None: ...

else:
    _PythonPickler = pickle._Pickler


class TorchPickler(_PythonPickler):
    """Writes references to Flambeau's classes and functions as references to PyTorch's."""

    def __init__(self, file: Any, protocol: int, storages: SavedStorages) -> None:
        super().__init__(file, protocol)
        self.storages = storages

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        kind = type(obj)
        if kind in _ATOMS:  # most of a file, and nothing that any of the questions below could be about
            known = self.memo.get(id(obj)) if kind is str else None
            if known is None:
                self.dispatch[kind](self, obj)
            else:
                self.write(self.get(known[0]))
        else:
            super().save(obj, save_persistent_id)

    def persistent_id(self, obj: Any) -> Any:
        return None if type(obj) in _CONTAINERS else self.storages.persistent_id(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = torch_name(obj, name)
        qualified = str(name or getattr(obj, "__qualname__", ""))
        if "<locals>" in qualified:
            raise AttributeError(
                f"Can't pickle local object {qualified!r}: whoever loads the file could not find it. Define it at the "
                "top of a module, or save a state dict."
            )
        if found is None:
            super().save_global(obj, name)
            return
        module, last = found
        write = self.write
        if self.proto >= 4:
            self.save(module)
            self.save(last)
            write(pickle.STACK_GLOBAL)
        else:
            write(pickle.GLOBAL + f"{module}\n{last}\n".encode())
        self.memoize(obj)

    dispatch: ClassVar[dict[type, Any]] = {**_PythonPickler.dispatch, FunctionType: save_global}

    def reducer_override(self, obj: Any) -> Any:
        """PyTorch's way to pickle what both libraries have; NotImplemented for the rest."""
        if type(obj) in _CONTAINERS:
            return NotImplemented
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if is_unbound(obj):
            return obj.__qualname__
        if isinstance(obj, (dtype, layout, memory_format, qscheme, StorageType)):
            if type(obj) is layout:
                return rebuild.layout_named, (repr(obj),)
            return obj.name
        if type(obj) is Size:
            return Size, (tuple(obj),)
        if type(obj) is device:
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is Generator:
            return Generator, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        if type(obj).__module__ == "flambeau.return_types":
            return type(obj), (tuple(obj), {})
        return NotImplemented

    def _tensor(self, tensor: Tensor) -> Any:
        from ..nn.parameter import Parameter

        cls = type(tensor)
        if cls is Parameter:
            return self._parameter(tensor)
        if cls is SparseTensor:
            parts = [dense_tensor(each, tensor) for each in tensor._array.parts()]
            flag = (tensor._array.coalesced,) if tensor.layout is COO else ()
            return rebuild.rebuild_sparse, (tensor.layout, (*parts, tensor.shape, *flag))
        if cls is QuantizedTensor:
            return self._quantized(tensor)
        if cls.__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        warn_of_hooks(tensor)
        make, arguments = self._parts(tensor, tensor.requires_grad)
        attributes: Any = dict(vars(tensor))
        get_state = getattr(cls, "__getstate__", None)
        if get_state is not None and get_state is not getattr(object, "__getstate__", None):
            attributes = get_state(tensor)
        if cls is Tensor and not attributes:
            return make, arguments
        return rebuild.rebuild_from_type_v2, (make, cls, arguments, attributes)

    def _quantized(self, tensor: Any) -> Any:
        scheme, scale, zero_point, axis = tensor._quantizer
        if tensor.dtype.name in ("quint4x2", "quint2x4"):
            raise NotImplementedError(f"tensors of {tensor.dtype} cannot be saved yet: PyTorch packs their codes")
        if axis is not None:
            scale, zero_point = wrap(scale, CPU), wrap(zero_point, CPU)
        storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
        meaning = (scheme, scale, zero_point) if axis is None else (scheme, scale, zero_point, axis)
        window = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        return rebuild.rebuild_quantized, (storage, *window, meaning, False, OrderedDict())

    def _parameter(self, parameter: Tensor) -> Any:
        warn_of_hooks(parameter)
        attributes = dict(vars(parameter))
        arguments: tuple[Any, ...] = parameter.data, parameter.requires_grad, OrderedDict()
        if attributes:
            return rebuild.rebuild_parameter_with_state, (*arguments, attributes)
        return rebuild.rebuild_parameter, arguments

    def _parts(self, tensor: Tensor, requires_grad: bool) -> Any:
        shape, strides, element = tuple(tensor.shape), tensor.stride(), tensor.dtype
        if tensor.device is META:
            return rebuild.rebuild_meta_tensor, (element, shape, strides, requires_grad)
        storage = tensor.untyped_storage()
        window: tuple[Any, ...] = tensor.storage_offset(), shape, strides, requires_grad, OrderedDict()
        marks = {name: True for name, holds in (("neg", is_neg), ("conj", is_conj)) if holds(tensor._kind)}
        metadata = (marks,) if marks else ()
        if self.storages.typed(storage, element):
            return rebuild.rebuild_tensor_v2, (TypedStorage(wrap_storage=storage, dtype=element), *window, *metadata)
        return rebuild.rebuild_tensor_v3, (storage, *window, element, *metadata)


def pickled(obj: Any, protocol: int, pickle_module: Any, storages: SavedStorages) -> bytes:
    """The pickle of `obj` without the contents of its storages, which `storages` collects."""
    stream = io.BytesIO()
    if pickle_module is pickle:
        TorchPickler(stream, protocol, storages).dump(obj)
        return stream.getvalue()

    class Pickler(pickle_module.Pickler):  # type: ignore[misc]  # the user gives the module
        def persistent_id(self, each: Any) -> Any:
            return storages.persistent_id(each)

    Pickler(stream, protocol=protocol).dump(obj)
    return stream.getvalue()


def archive_folder(f: Any) -> str:
    """The folder of all records in an archive: the name of its file without the extension."""
    if not isinstance(f, (str, os.PathLike)):
        return "archive"
    name = os.fspath(f)
    return Path(os.fsdecode(name)).stem or "archive"


class Snapshot:
    """An object ready to be written: its pickle, and its storages by reference or as copies."""

    def __init__(self, obj: Any, protocol: int, pickle_module: Any, *, stacked: bool, copied: bool = False) -> None:
        self.stacked = stacked
        self.storages = SavedStorages(stacked=stacked)
        self.pickle = pickled(obj, protocol, pickle_module, self.storages)
        self.protocol = protocol
        self.skip = settings.skips_data()
        self.contents = self.storages.contents()
        if copied:
            self.contents = [(key, memory.copy(), element) for key, memory, element in self.contents]

    @property
    def nbytes(self) -> int:
        """How large the file will be, roughly."""
        return len(self.pickle) + sum(int(memory.nbytes) for _, memory, _ in self.contents)

    def write(self, file: Any, folder: str, *, say_order: bool = True) -> None:
        """Write the container to an open file."""
        if self.stacked:
            self._write_stacked(file)
        else:
            self._write_archive(file, folder, say_order)

    def _write_archive(self, file: Any, folder: str, say_order: bool) -> None:
        alignment = settings.SWITCHES.alignment
        writer = ArchiveWriter(file, folder, crc32=settings.get_crc32_options(), alignment=alignment)
        try:
            records = self.records(say_order)
            sums = [writer.prepare(content) for _, content in records]
            for (name, content), checksum in zip(records, sums, strict=True):
                writer.write(name, content, checksum)
            writer.write("version", _ARCHIVE_VERSION)
            writer.finish()
        finally:
            writer.close()

    def records(self, say_order: bool = True) -> list[tuple[str, Any]]:
        """Name and content of each record of an archive, but for its version."""
        order = [("byteorder", sys.byteorder.encode())] if say_order else []
        return [
            ("data.pkl", self.pickle),
            (".format_version", _FORMAT_VERSION),
            (".storage_alignment", str(settings.SWITCHES.alignment).encode()),
            *order,
            *[
                (f"data/{key}", np.zeros(memory.nbytes, np.uint8) if self.skip else memory)
                for key, memory, _ in self.contents
            ],
        ]

    def _write_stacked(self, file: Any) -> None:
        facts = {
            "protocol_version": PROTOCOL_VERSION,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        }
        keys = sorted(key for key, _, _ in self.contents)
        for each in (MAGIC_NUMBER, PROTOCOL_VERSION, facts):
            write_all(file, pickle.dumps(each, self.protocol))
        write_all(file, self.pickle)
        write_all(file, pickle.dumps(keys, self.protocol))
        for _, memory, element in sorted(self.contents, key=lambda each: each[0]):
            size = 1 if element is None else element.itemsize
            if sys.byteorder == "big" and element is not None:
                memory = memory.copy()
                swap_bytes(memory, element)
            write_all(file, struct.pack("<q", memory.nbytes // size))
            write_all(file, memory)
