"""`UntypedStorage`: the memory that a tensor and its views share.

Arrays know the array that owns their memory, so no tensor carries a storage: it is looked up when somebody asks, and is
one object as long as anyone holds it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .backend import backend_at, backend_of_array, is_array, is_installed, moved, read, to_host
from .device import CPU, META, device, usable_device
from .dtype import dtype
from .kind import Kind
from .slots import SLOTS

_BYTE = np.dtype(np.uint8)

_STRIDED_BASE: Any = type(as_strided(np.empty(1), (1,), (8,)).base)
"""What stands between the result of NumPy's `as_strided` and the array that it was made from."""


def owner_of(array: Any) -> Any:
    """The array that `array` is a view of in the end: the one that stands for the whole memory."""
    base: Any = array.base
    array_class = type(array)
    while base is not None and base is not array:  # a sparse array is its own base
        if type(base) is _STRIDED_BASE:
            base = base.base
        elif type(base) is not array_class:
            break
        array = base
        base = array.base
    return array


def are_apart(first: Any, second: Any) -> bool:
    """Whether two arrays have different memory. (`owner_of`, short for arrays that own theirs, and views of such.)"""
    one, other = first.base, second.base
    if one is other:
        return one is None and first is not second
    if one is None:
        one = first
    if other is None:
        other = second
    if one is other:
        return False
    if type(one) is type(other) is np.ndarray and one.base is None and other.base is None:
        return True
    return owner_of(first) is not owner_of(second)


def address_of(array: Any) -> int:
    """Where the first element of `array` is."""
    if type(array) is np.ndarray:
        place: int = array.__array_interface__["data"][0]
        return place
    return backend_of_array(array).address(array)


def offset_of(array: Any) -> int:
    """Elements between the start of the storage and the first element of `array`."""
    owner = owner_of(array)
    return 0 if owner is array else (address_of(array) - address_of(owner)) // array.itemsize


class _Foreign:
    """Memory of somebody else's array as an array of bytes; keeps that array alive."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: Any, nbytes: int) -> None:
        self.array = array
        place = array.__array_interface__["data"]
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": place}


def adopt_array(array: Any) -> Any:
    """A window on the memory of a user's array, with a storage that begins where this array does."""
    if array.base is None and array.flags.c_contiguous:
        adopted = array.view()
        fix_size(array)
        return adopted
    nbytes = 0
    if array.size:
        steps = sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
        nbytes = steps + array.itemsize
    memory = np.asarray(_Foreign(array, nbytes))
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


def window(memory: Any, shape: tuple[int, ...], array_type: Any, offset: int, strides: tuple[int, ...]) -> Any:
    """An array over part of `memory`, an array of bytes; offset and strides count bytes."""
    if 0 in shape:
        offset = min(offset, memory.nbytes)
    return backend_of_array(memory).window(memory, shape, array_type, offset, strides)


def needed_bytes(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, itemsize: int) -> int:
    """How many bytes of storage a window takes; everything in bytes."""
    if 0 in shape:
        return 0
    return offset + itemsize + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


_FIXED: dict[int, weakref.ref[Any]] = {}


def fix_size(owner: Any) -> None:
    """Somebody else holds this memory too: it must stay where it is."""
    key = id(owner)
    if key not in _FIXED:
        _FIXED[key] = weakref.ref(owner, lambda _: _FIXED.pop(key, None))


def _bytes(make: Any, nbytes: int) -> Any:
    """So many bytes of memory, made by one of NumPy's functions."""
    try:
        return make(nbytes, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:
        raise SLOTS.out_of_memory(error, nbytes) from None


def _items(data: Any) -> list[int]:
    """The numbers of which a storage is made."""
    if not isinstance(data, Sequence):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(data).__name__}")
    for each in data:
        if not isinstance(each, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), but "
                f"one of the items was of type {type(each).__name__} instead of int"
            )
    return list(data)


class UntypedStorage:
    """A block of bytes. Tensors are strided windows on it; two tensors share memory if their storages are equal.

    Args:
        data: how many bytes, or a sequence of bytes. Default: `0`.
        device: where the bytes lie. Default: `device(type='cpu')`.

    Example:
        >>> x = torch.zeros(2)
        >>> x.untyped_storage().nbytes(), x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        (8, True)
    """

    __slots__ = ("__weakref__", "_meta_bytes", "_owner", "device")
    _owner: Any
    _meta_bytes: int
    device: device

    def __new__(cls, data: Any = 0, *, device: Any = CPU) -> UntypedStorage:
        from .device import usable_device

        place = CPU if device is None else usable_device(device)
        content = data if isinstance(data, int) and not isinstance(data, bool) else np.array(_items(data), np.uint8)
        if isinstance(content, int) and content >= 2**63:
            raise ValueError(f"Overflow when unpacking long long: {content} bytes")
        if isinstance(content, int) and content < 0:
            raise RuntimeError(f"a storage cannot have a negative size: {content}")
        if place.dataless:
            from .arrays.abstract import empty_meta

            nbytes = content if isinstance(content, int) else content.nbytes
            return _new_storage(empty_meta((nbytes,), _BYTE), place, nbytes)
        memory = _bytes(np.zeros, content) if isinstance(content, int) else content
        return _new_storage(backend_at(place).from_host(memory), place)

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: dtype | None = None
    ) -> UntypedStorage:
        """A storage with a copy of `count` numbers in `buffer`, which has them in `byte_order`: "big", "little" or
        "native". Of a negative count: all.
        """
        from .arrays.byte_order import bytes_of_buffer

        return storage_of(bytes_of_buffer(buffer, byte_order, count, offset, dtype))

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage with the content of a file; `shared`: what is written there goes into the file, made if need be."""
        import os

        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(nbytes, os.path.getsize(filename)))
        try:
            available = os.path.getsize(filename)
        except OSError as error:
            raise RuntimeError(f"unable to open file <{filename}> in read-only mode: {error.strerror}") from None
        wanted = nbytes
        if wanted > available:
            raise RuntimeError(
                f"file <{filename}> size <{available}> is smaller than the required mapping size <{wanted}>"
            )
        memory = (
            np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(wanted,)) if wanted else np.empty(0, np.uint8)
        )
        storage = _new_storage(memory.view(np.ndarray), CPU)
        if shared:
            _FILES[storage] = os.fspath(filename)
        return storage

    @property
    def filename(self) -> str | None:
        """The file that this storage shares, if there is one."""
        return _FILES.get(self)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        if self.device.dataless:
            return 0
        return address_of(self._owner)

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._meta_bytes if self.device.dataless else self._owner.nbytes

    size = nbytes
    __len__ = nbytes

    def element_size(self) -> int:
        """Bytes of one element: 1."""
        return 1

    def bytes(self) -> Any:
        """The memory as a one-dimensional array of bytes that shares it."""
        if self.device.dataless:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        owner = self._owner
        if owner.ndim != 1 or owner.dtype != np.uint8:
            if not owner.flags.c_contiguous:
                owner = owner.transpose(sorted(range(owner.ndim), key=lambda axis: -owner.strides[axis]))
            owner = owner.reshape(-1, copy=False).view(np.uint8)
        return owner

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return int(read(self.bytes()[self._position(index)]))
        part = self.bytes()[self._range(index)]
        if type(part) is not np.ndarray:
            return _new_storage(part.copy(), self.device)
        # Memory of its own to NumPy: else tensors on it would be on the whole storage.
        shared = np.asarray(_Foreign(part, part.nbytes))
        fix_size(shared)
        return _new_storage(shared, self.device)

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._range(index) if isinstance(index, slice) else self._position(index)
        if not isinstance(value, int):
            raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
        self.bytes()[place] = value & 0xFF

    def _range(self, index: slice) -> slice:
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        return index

    def _position(self, index: Any) -> int:
        if type(index) is bool or not hasattr(index, "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        position = int(index)
        if not -self.nbytes() <= position < self.nbytes():
            raise IndexError(f"index {position} out of range for storage of size {self.nbytes()}")
        return position

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return type(self)(0, device=self.device)

    def tolist(self) -> list[int]:
        """The bytes as Python ints."""
        numbers: list[int] = to_host(self.bytes()).tolist()
        return numbers

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte to `value`."""
        self.bytes()[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take over the bytes of another storage of the same size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match: self has {self.nbytes()} bytes, source {source.nbytes()}")
        memory = self.bytes()
        memory[:] = moved(source._untyped().bytes(), backend_at(self.device))
        return self

    def clone(self) -> UntypedStorage:
        """A storage with a copy of the bytes."""
        if self.device.dataless:
            return UntypedStorage(self.nbytes(), device=self.device)
        return _new_storage(self.bytes().copy(), self.device)

    def untyped(self) -> UntypedStorage:
        """This storage itself."""
        return self

    _untyped = untyped

    def cpu(self) -> UntypedStorage:
        """This storage if it is on the CPU, else a copy there."""
        memory = self.bytes()
        return self if type(memory) is np.ndarray else _new_storage(to_host(memory), CPU)

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """This storage if it is on a device, else a copy there."""
        target = usable_device(device)
        if target == self.device:
            return self
        if target.dataless:
            return UntypedStorage(self.nbytes(), device=target)
        return _new_storage(moved(self.bytes(), backend_at(target)), target)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a CUDA device."""
        return self.to(device="cuda" if device is None else device)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in memory that is page-locked for an accelerator; this storage if it is that already."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.device.type}' only CPU memory can be pinned")
        if self.is_pinned():
            return self
        try:
            usable_device("cuda")
        except AssertionError as error:
            raise RuntimeError(f"Cannot access accelerator device when none is available. {error}") from None
        return _new_storage(SLOTS.pinned_copy(self.bytes()), CPU)

    def resizable(self) -> bool:
        """Whether `resize_` may move the memory: not if a NumPy array or another buffer shares it."""
        return self.device.dataless or (self._owner.base is None and id(self._owner) not in _FIXED)

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the number of bytes; the content is kept, and tensors on this storage follow it to its new place.

        A tensor that does not fit into a smaller storage keeps the old memory.
        """
        return self.resized_for(None, nbytes)

    def resized_for(self, mover: Any, nbytes: int) -> UntypedStorage:
        """`resize_`, where `mover` is a tensor that takes care of itself."""
        if not isinstance(nbytes, int) or isinstance(nbytes, bool):
            raise RuntimeError(f"resize_ expects an int, but got {type(nbytes).__name__}")
        if nbytes < 0:
            raise RuntimeError(f"a storage cannot have a negative size: {nbytes}")
        if nbytes >= 2**63:
            raise ValueError(f"Overflow when unpacking long long: {nbytes} bytes")
        if not self.resizable():
            raise RuntimeError(
                "Trying to resize storage that is not resizable: its memory is shared with a NumPy array or another "
                "buffer. Work on a .clone() of the tensor."
            )
        if self.device.dataless:
            self._meta_bytes = nbytes
        elif nbytes != self._owner.nbytes:
            self._move(_bytes(backend_at(self.device).empty, nbytes), mover)
        return self

    def _move(self, memory: Any, mover: Any = None) -> None:
        old = self._owner
        start = self._exchange(memory)
        if mover is None or not _is_alone(mover, old):  # else there is nobody to look for, which takes long
            _follow({id(old): (old, start, memory)})

    def _exchange(self, memory: Any) -> int:
        """Take `memory`, with what fits of the content; the address of what it replaces."""
        start, content = self.data_ptr(), self.bytes()
        kept = min(memory.nbytes, content.nbytes)
        memory[:kept] = content[:kept]
        self._owner = memory
        _STORAGES[id(memory)] = self
        return start

    def share_memory_(self) -> UntypedStorage:
        """Move the content to memory that other processes can see."""
        return self.shared_for(None)

    def shared_for(self, mover: Any) -> UntypedStorage:
        """`share_memory_`, where `mover` is a tensor that takes care of itself."""
        if self._can_be_shared():
            from .shared_memory import new_shared

            self._move(new_shared(self.nbytes()), mover)
        return self

    def _can_be_shared(self) -> bool:
        return self.device.type == "cpu" and not self.device.dataless and self.nbytes() > 0 and not self.is_shared()

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """A storage of so many bytes in memory that other processes can see."""
        return cls(size, device=device).share_memory_()

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        if self.device.dataless:
            return False
        base = self._owner.base
        return type(getattr(base, "obj", base)).__name__ in ("mmap", "SharedBlock")

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the memory is page-locked for an accelerator."""
        return self.device.type == "cpu" and is_installed("cuda") and SLOTS.is_pinned(self._owner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._owner is other._owner

    def __hash__(self) -> int:
        return id(self._owner)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.device.dataless:
            return _load_meta_storage, (self.nbytes(),)
        place = () if self.device is CPU else (str(self.device),)
        return _load_storage, (to_host(self.bytes()).tobytes(), *place)

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return self.clone()

    @property
    def _cdata(self) -> int:
        return id(self._owner)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    is_hpu = is_sparse = is_sparse_csr = False

    def __repr__(self) -> str:
        head = f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"
        if self.device.dataless:
            return "...\n" + head
        return "".join(f" {each}\n" for each in self.tolist()) + head

    __str__ = __repr__


_FILES: weakref.WeakKeyDictionary[UntypedStorage, str] = weakref.WeakKeyDictionary()
"""The files that storages share."""

_STORAGES: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()
"""The living storages by the id of the array that owns their memory, which they keep alive."""


def storage_of(array: Any, place: device = CPU) -> UntypedStorage:
    """The storage under `array`."""
    owner = owner_of(array)
    found = _STORAGES.get(id(owner))
    if found is not None and found._owner is owner:
        return found
    itemsize = array.itemsize
    extent = needed_bytes(array.shape, array.strides, 0, itemsize) if place.dataless else 0
    return _new_storage(owner, place, extent)


def _new_storage(owner: Any, place: device, meta_bytes: int = 0) -> UntypedStorage:
    storage: UntypedStorage = object.__new__(UntypedStorage)
    storage._owner = owner
    storage._meta_bytes = meta_bytes
    storage.device = place
    _STORAGES[id(owner)] = storage
    return storage


def share_together(storages: list[UntypedStorage]) -> None:
    """Share the memory of many storages, and look only once for the tensors on them."""
    from .shared_memory import new_shared

    moves = {}
    for storage in storages:
        if storage._can_be_shared():
            old, memory = storage._owner, new_shared(storage.nbytes())
            moves[id(old)] = old, storage._exchange(memory), memory
    _follow(moves)


def _follow(moves: dict[int, tuple[Any, int, Any]]) -> None:
    """Make tensors follow memory that moved: the old owner, its address, the new memory, by the id of the old owner.

    That is rare, so that all living objects are looked at; a table of tensors would cost every op.
    """
    from .process.collector import living_objects

    for each in living_objects() if moves else ():
        if not issubclass(type(each), Kind.tensor_type):
            continue
        array: Any = getattr(each, "_array", None)  # a tensor under construction has none yet
        if not is_array(array) or (move := moves.get(id(owner_of(array)))) is None:
            continue
        _, start, memory = move
        offset = address_of(array) - start
        if needed_bytes(array.shape, array.strides, offset, array.itemsize) <= memory.nbytes:
            each._array = window(memory, array.shape, array.dtype, offset, array.strides)


def _is_alone(tensor: Any, owner: Any) -> bool:
    """Whether nothing but `tensor` and the caller holds the memory, as far as reference counts tell."""
    array = tensor._array
    if owner_of(array) is not owner:
        return False
    return _references(tensor, owner) == (_TO_ITS_OWN_MEMORY if array is owner else _TO_A_WINDOW)


def _references(tensor: Any, owner: Any) -> tuple[int, int]:
    """How many references there are to the memory, and to the tensor's array, as seen from here."""
    array = tensor._array
    return sys.getrefcount(owner), sys.getrefcount(array)


def _references_of_nobody_else(window: bool) -> tuple[int, int]:
    """What `_is_alone` counts where one tensor holds the memory. Pythons count references to variables differently."""

    def asked(tensor: Any, owner: Any) -> tuple[int, int]:
        array = tensor._array
        assert (array is owner) != window
        return _references(tensor, owner)

    owner = np.empty(1, np.uint8)
    tensor = SimpleNamespace(_array=owner[:] if window else owner)
    return asked(tensor, owner)


_TO_ITS_OWN_MEMORY, _TO_A_WINDOW = map(_references_of_nobody_else, (False, True))


def _load_storage(content: bytes, place: str = "cpu") -> UntypedStorage:
    return _new_storage(np.frombuffer(content, np.uint8).copy(), CPU).to(device=place)


def _load_meta_storage(nbytes: int) -> UntypedStorage:
    return UntypedStorage(nbytes, device=META)
