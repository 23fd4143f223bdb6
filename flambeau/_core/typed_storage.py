"""`TypedStorage`: a storage seen as elements of one dtype, as PyTorch had it before storages were bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .arrays.narrow import as_type, widened
from .backend import to_host
from .device import device
from .dtype import DEFAULTS, FLOAT8, NAMES, dtype
from .names.same_as import same_as
from .slots import SLOTS
from .storage import UntypedStorage, storage_of


class TypedStorage:
    """A storage whose elements have a dtype: what `tensor.storage()` gives.

    Args:
        *args: a size, or a sequence of numbers.
        device: the device; None means the CPU.
        dtype (dtype, optional): the dtype of the elements.
        wrap_storage (UntypedStorage, optional): a storage whose memory is shared.

    Example:
        >>> storage = torch.ones(3).untyped_storage()
        >>> torch.storage.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True).size()
        3
    """

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(
        self, *args: Any, device: Any = None, dtype: dtype | None = None, wrap_storage: UntypedStorage | None = None,
        _internal: bool = False,
    ) -> None:  # fmt: skip
        self.dtype = DEFAULTS.float if dtype is None else dtype
        if wrap_storage is not None:
            if device is not None:
                raise RuntimeError("TypedStorage: device= cannot be given with wrap_storage=, which is on one already")
            self._untyped_storage = wrap_storage
        elif not args:
            self._untyped_storage = UntypedStorage(0, device=device)
        elif isinstance(args[0], int):
            self._untyped_storage = UntypedStorage(args[0] * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = storage_of(np.array(list(args[0]), self.dtype.numpy))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *,
        dtype: dtype | None = None, device: Any = None,
    ) -> TypedStorage:  # fmt: skip
        """A storage with a copy of `count` numbers in a buffer; see `UntypedStorage.from_buffer`."""
        element = DEFAULTS.float if dtype is None else dtype
        memory = UntypedStorage.from_buffer(buffer, byte_order, count, offset, element)
        return cls(wrap_storage=memory if device is None else memory.to(device=device), dtype=element)

    @classmethod
    def from_file(cls, filename: str, shared: bool, size: int, *, dtype: dtype | None = None) -> TypedStorage:
        """A storage with the content of a file, `size` elements of it; `shared`: changes go into the file."""
        element = DEFAULTS.float if dtype is None else dtype
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * element.itemsize), dtype=element)

    def untyped(self) -> UntypedStorage:
        """The storage as bytes: an `UntypedStorage` on this memory."""
        return self._untyped_storage

    _untyped = untyped

    def _elements(self) -> Any:
        memory = self._untyped_storage.bytes()
        whole = memory.nbytes // self.dtype.itemsize * self.dtype.itemsize
        return memory[:whole].view(self.dtype.numpy)

    _cdata: int = same_as("_untyped_storage._cdata")
    device: device = same_as("_untyped_storage.device")
    is_cuda: bool = same_as("_untyped_storage.is_cuda")

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def pickle_storage_type(self) -> str:
        """The name of the legacy storage class of this dtype."""
        from .dtype import LEGACY_NAMES

        return f"{LEGACY_NAMES[self.dtype]}Storage"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return widened(to_host(self._elements())[index]).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        elements = widened(to_host(self._elements()))
        numbers: list[Any] = (elements.astype(np.float32) if self.dtype.name == "bfloat16" else elements).tolist()
        return numbers

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element to `value`."""
        self._elements()[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take over the elements of another storage of the same length."""
        if len(source) != len(self):
            raise RuntimeError(f"size does not match: self has {len(self)} elements, source {len(source)}")
        self._elements()[:] = source._elements() if isinstance(source, TypedStorage) else source.bytes()
        return self

    def clone(self) -> TypedStorage:
        """A storage with a copy of the elements."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def cpu(self) -> TypedStorage:
        """This storage if it is on the CPU, else a copy there."""
        return self.to(device="cpu")

    def _to(self, target: dtype) -> TypedStorage:
        converted = np.array(as_type(to_host(self._elements()), target.numpy))
        return TypedStorage(wrap_storage=storage_of(converted), dtype=target)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """A storage with the same elements on a device, this one if it is there."""
        found = self._untyped_storage.to(device=device)
        return self if found is self._untyped_storage else TypedStorage(wrap_storage=found, dtype=self.dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class of storages of this dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self._to(getattr(dtype, "dtype", dtype))

    def get_device(self) -> int:
        """The ordinal of the device: -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    def resizable(self) -> bool:
        """Whether `resize_` may move the memory."""
        return self._untyped_storage.resizable()

    @property
    def filename(self) -> str | None:
        """The file whose content this is, if it came from one and shares it."""
        return self._untyped_storage.filename

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """A copy in memory that is page-locked for an accelerator."""
        return TypedStorage(wrap_storage=self._untyped_storage.pin_memory(device), dtype=self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a CUDA device."""
        return self.to(device="cuda" if device is None else device)

    def hpu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """A copy on an HPU."""
        return self.to(device="hpu" if device is None else device)

    is_hpu = is_sparse = False

    def share_memory_(self) -> TypedStorage:
        """Move the content to memory that other processes can see."""
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """A storage of so many elements of the same dtype in memory that other processes can see."""
        memory = UntypedStorage._new_shared(size * self.dtype.itemsize, device=device)
        return TypedStorage(wrap_storage=memory, dtype=self.dtype)

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        return self._untyped_storage.is_shared()

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked for an accelerator."""
        return self._untyped_storage.is_pinned()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __reduce__(self) -> tuple[Any, ...]:
        if type(self).__module__ == "torch.storage":  # Flambeau stands in for torch
            return SLOTS.storage_as_bytes(self)
        return _load_typed, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        head = f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
        return "".join(f" {each}\n" for each in self.tolist()) + head

    __str__ = __repr__


def _conversion(name: str, target: dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(target)

    convert.__name__ = name
    convert.__doc__ = f"A copy whose elements are {target.name}."
    return convert


for _method, _dtype in {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "char": "int8", "complex_double": "complex128",
    "complex_float": "complex64", "double": "float64", "float": "float32", "half": "float16", "int": "int32",
    "long": "int64", "short": "int16", **{each.name: each.name for each in FLOAT8},
}.items():  # fmt: skip
    setattr(TypedStorage, _method, _conversion(_method, NAMES[_dtype]))


def _load_typed(storage: UntypedStorage, kind: dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=kind)
