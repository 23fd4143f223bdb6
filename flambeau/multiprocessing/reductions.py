"""How tensors travel through the queues, pipes and process arguments of `multiprocessing`: as shared memory.

Each `reduce_...` function says how to make an object again, by a `rebuild_...` function and its arguments.
"""

from __future__ import annotations

import os
import sys
import weakref
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

from .._core.arrays.sparse import COO
from .._core.device import CPU, LAYOUTS, META, usable_device
from .._core.device import device as Device
from .._core.dtype import dtype
from .._core.names.absent import Table
from .._core.pickling import as_window, warn_of_hooks
from .._core.pickling import rebuild_tensor as window_on
from .._core.shared_memory import ALL_ACCESS, block_under, from_descriptor, from_handle, from_link
from .._core.sparse import SparseTensor, dense_tensor, rebuild_sparse
from .._core.storage import UntypedStorage, storage_of
from .._core.tensor import Tensor
from .._core.typed_storage import TypedStorage
from ..nn.parameter import Parameter

__all__ = [
    "ForkingPickler", "SharedCache", "StorageWeakRef", "fd_id", "init_reductions", "rebuild_cuda_storage",
    "rebuild_event", "rebuild_meta_tensor",
    "rebuild_nested_tensor", "rebuild_sparse_compressed_tensor", "rebuild_sparse_coo_tensor", "rebuild_storage_empty",
    "rebuild_storage_fd", "rebuild_storage_filename", "rebuild_tensor", "rebuild_typed_storage",
    "rebuild_typed_storage_child", "reduce_event", "reduce_nested_tensor", "reduce_sparse_tensor", "reduce_storage",
    "reduce_tensor", "reduce_typed_storage", "reduce_typed_storage_child", "shared_cache", "storage_from_cache",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .raising(
        RuntimeError,
        "{name}: a process that runs PyTorch has sent this tensor; Flambeau opens what Flambeau sends",
        functions="rebuild_cuda_tensor",
    )
    .parts()
)


# ----- storages that are known already -----------------------------------------------------------------------------


class StorageWeakRef:
    """A weak reference to the memory of a storage: `expired` once nobody has it any more."""

    __slots__ = ("_memory", "cdata")
    _known: ClassVar[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()

    def __init__(self, storage: Any) -> None:
        memory = (storage.untyped() if isinstance(storage, TypedStorage) else storage)._owner
        self.cdata = id(memory)
        self._memory = weakref.ref(memory)
        self._known[self.cdata] = memory

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """The reference with this `cdata`, of a storage that another one refers to."""
        memory = cls._known.get(cdata)
        if memory is None:
            raise RuntimeError(f"no storage that is referred to has the cdata {cdata}")
        return cls(storage_of(memory))

    def expired(self) -> bool:
        """Whether the memory is gone."""
        return self._memory() is None

    def storage(self) -> UntypedStorage | None:
        """The storage, as long as it is there."""
        memory = self._memory()
        return None if memory is None else storage_of(memory)

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


class SharedCache(dict[Any, StorageWeakRef]):
    """Storages that have arrived, by what told them apart; dead ones are removed when there are many."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 128

    def __setitem__(self, key: Any, storage_ref: StorageWeakRef) -> None:
        super().__setitem__(key, storage_ref)
        if len(self) > self.limit:
            self.free_dead_references()

    def free_dead_references(self) -> None:
        """Forget what is gone, and let the next time be when there are twice as many as are left."""
        for key, reference in list(self.items()):
            if reference.expired():
                del self[key]
        self.limit = max(128, 2 * len(self))


shared_cache = SharedCache()
"""The storages that came from other processes."""


def storage_from_cache(cls: Any, key: Any) -> UntypedStorage | None:
    """The storage that arrived under `key` before, if it is still there."""
    reference = shared_cache.get(key)
    return None if reference is None else reference.storage()


def fd_id(fd: int) -> tuple[int, int]:
    """What tells one open file from another, whatever their numbers."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


# ----- storages ----------------------------------------------------------------------------------------------------


def rebuild_storage_fd(cls: Any, df: Any, size: int) -> UntypedStorage:
    """A storage on the memory behind an open file that another process sent."""
    descriptor = df.detach()
    key = fd_id(descriptor)
    known = storage_from_cache(cls, key)
    if known is not None:
        os.close(descriptor)
        return known
    storage = storage_of(from_descriptor(descriptor, size), CPU)
    shared_cache[key] = StorageWeakRef(storage)
    return storage


def rebuild_storage_filename(cls: Any, manager: Any, handle: Any, size: int, dtype: Any = None) -> UntypedStorage:
    """A storage on the memory that another process gave a name to."""
    path = handle.decode() if isinstance(handle, bytes) else handle
    return storage_of(from_link(path, size * (1 if dtype is None else dtype.itemsize)), CPU)


def rebuild_storage_handle(cls: Any, handle: Any, identity: tuple[int, int], size: int) -> UntypedStorage:
    """A storage on the memory behind a handle of Windows that another process sent."""
    return storage_of(from_handle(handle.detach(), identity, size), CPU)


def rebuild_storage_empty(cls: Any) -> Any:
    """A storage without bytes."""
    return cls()


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """How another process gets at the memory of a storage, which becomes shared; without memory, its description."""
    place = storage.device
    if place.type == "cuda" and storage.nbytes():
        from .._backends.cuda.memory.interprocess import lend

        return rebuild_cuda_storage, tuple(lend(storage))
    if place.dataless or place.type != "cpu" or not reduction.HAVE_SEND_HANDLE:
        return storage.__reduce__()
    if not storage.nbytes():
        return rebuild_storage_empty, (type(storage),)
    if storage.filename is not None:
        return UntypedStorage.from_file, (storage.filename, True, storage.nbytes())
    storage.share_memory_()
    block = block_under(storage._owner)
    if block is None:  # private pages of a file, or a worker's batch: this process alone knows where they are
        storage = storage.clone().share_memory_()
        block = block_under(storage._owner)
        assert block is not None
    if sys.platform == "win32":
        handle = reduction.DupHandle(block.descriptor, ALL_ACCESS)
        return rebuild_storage_handle, (type(storage), handle, block.identity, block.nbytes)
    if block.name is not None:
        return rebuild_storage_filename, (type(storage), None, block.link(), block.nbytes)
    return rebuild_storage_fd, (type(storage), reduction.DupFd(block.descriptor), block.nbytes)


def rebuild_cuda_storage(*loan: Any) -> UntypedStorage:
    """A storage on memory of a CUDA device that another process lends."""
    device = usable_device(Device("cuda", loan[3]))
    from .._backends.cuda.memory.interprocess import Loan, borrow

    return storage_of(borrow(Loan(*loan)), device)


def rebuild_typed_storage(storage: UntypedStorage, dtype: dtype) -> TypedStorage:
    """A storage of elements over one of bytes."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_typed_storage(storage: TypedStorage) -> tuple[Any, ...]:
    """A storage of elements as one of bytes, which goes its own way."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_typed_storage_child(storage: UntypedStorage, storage_type: Any) -> Any:
    """A storage from another process, of a class that has its dtype, such as `FloatStorage`."""
    return storage_type(wrap_storage=storage)


def reduce_typed_storage_child(storage: Any) -> tuple[Any, ...]:
    """What another process needs to rebuild a storage of a class that has its dtype."""
    return rebuild_typed_storage_child, (storage.untyped(), type(storage))


# ----- tensors -----------------------------------------------------------------------------------------------------


def rebuild_tensor(cls: Any, storage: Any, metadata: tuple[Any, ...]) -> Any:
    """A tensor or parameter over a storage of elements: offset, shape, strides, and whether it needs gradients."""
    offset, size, stride, requires_grad = metadata
    tensor = window_on(storage.untyped(), storage.dtype, (offset, tuple(size), tuple(stride)), False)
    if isinstance(cls, type) and issubclass(cls, Parameter):
        return cls(tensor, requires_grad=requires_grad)
    tensor.requires_grad = requires_grad
    return tensor


def rebuild_meta_tensor(
    tensor_cls: Any, tensor_size: Any, tensor_stride: Any, tensor_offset: int, dtype: dtype, storage_size_bytes: int,
    requires_grad: bool,
) -> Any:  # fmt: skip
    """A tensor without data, over a storage of so many bytes."""
    storage = TypedStorage(wrap_storage=UntypedStorage(storage_size_bytes, device=META), dtype=dtype, _internal=True)
    return rebuild_tensor(tensor_cls, storage, (tensor_offset, tensor_size, tensor_stride, requires_grad))


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A tensor as a window on a storage, which goes its own way; only leaves cross to another process."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    warn_of_hooks(tensor)
    return as_window(tensor)


def reduce_event(event: Any) -> tuple[Any, ...]:
    """An event of a CUDA device by its handle; it must be made with `interprocess=True`."""
    return rebuild_event, (event.device, event.ipc_handle())


def rebuild_event(device: Any, handle: bytes) -> Any:
    """The event that another process gave a handle of."""
    usable_device("cuda")
    from ..cuda.streams import Event

    return Event.from_ipc_handle(device, handle)


def rebuild_sparse_coo_tensor(
    rebuild_indices_func: Any, rebuild_indices_args: Any, rebuild_values_func: Any, rebuild_values_args: Any,
    shape: Any, is_coalesced: bool,
) -> Tensor:  # fmt: skip
    """A sparse tensor of coordinates and values, each of which is rebuilt first."""
    parts = rebuild_indices_func(*rebuild_indices_args), rebuild_values_func(*rebuild_values_args)
    return rebuild_sparse(COO, (*parts, tuple(shape), is_coalesced))


def rebuild_sparse_compressed_tensor(
    rebuild_compressed_indices_func: Any, rebuild_compressed_indices_args: Any, rebuild_plain_indices_func: Any,
    rebuild_plain_indices_args: Any, rebuild_values_func: Any, rebuild_values_args: Any, shape: Any, layout: Any,
) -> Tensor:  # fmt: skip
    """A sparse matrix by rows or columns of its parts, each of which is rebuilt first."""
    compressed = rebuild_compressed_indices_func(*rebuild_compressed_indices_args)
    plain = rebuild_plain_indices_func(*rebuild_plain_indices_args)
    return rebuild_sparse(layout, (compressed, plain, rebuild_values_func(*rebuild_values_args), tuple(shape)))


def reduce_sparse_tensor(sparse: Any) -> tuple[Any, ...]:
    """A sparse tensor as its parts, which are dense tensors."""
    array = sparse._array
    parts: list[Any] = []
    for name in ("indices", "values") if sparse.layout is COO else ("compressed", "plain", "values"):
        part = dense_tensor(getattr(array, name), sparse).share_memory_()
        setattr(array, name, part._array)  # the memory has moved
        parts += reduce_tensor(part)[:2]
    if sparse.layout is COO:
        return rebuild_sparse_coo_tensor, (*parts, tuple(sparse.shape), array.coalesced)
    return rebuild_sparse_compressed_tensor, (*parts, tuple(sparse.shape), sparse.layout)


def rebuild_nested_tensor(
    rebuild_buffer_func: Any, rebuild_buffer_args: Any, rebuild_sizes_func: Any, rebuild_sizes_args: Any,
    rebuild_strides_func: Any, rebuild_strides_args: Any, rebuild_offsets_func: Any, rebuild_offsets_args: Any,
) -> Any:  # fmt: skip
    """A nested tensor of a buffer and the sizes, strides and offsets of its rows."""
    from ..nested import nested_tensor

    buffer = rebuild_buffer_func(*rebuild_buffer_args)
    sizes = rebuild_sizes_func(*rebuild_sizes_args).tolist()
    strides = rebuild_strides_func(*rebuild_strides_args).tolist()
    offsets = rebuild_offsets_func(*rebuild_offsets_args).tolist()
    start = buffer.storage_offset()
    plain = buffer.detach()
    rows = [
        plain.as_strided(size, stride, start + offset)
        for size, stride, offset in zip(sizes, strides, offsets, strict=True)
    ]
    return nested_tensor(rows, layout=LAYOUTS["jagged"], requires_grad=buffer.requires_grad)


def reduce_nested_tensor(nt: Any) -> tuple[Any, ...]:
    """A nested tensor as its values, and the sizes, strides and offsets of its rows in them."""
    from .. import tensor

    values = nt.values()
    rows = [each.detach() for each in nt.unbind()]
    start = values.storage_offset()
    numbers = (
        tensor([tuple(each.shape) for each in rows]),
        tensor([each.stride() for each in rows]),
        tensor([each.storage_offset() - start for each in rows]),
    )
    return rebuild_nested_tensor, tuple(call for part in (values, *numbers) for call in reduce_tensor(part)[:2])


def init_reductions() -> None:
    """Register these with the pickler of `multiprocessing`."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(SparseTensor, reduce_sparse_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)
