"""How tensors travel through the queues, pipes and process arguments of `multiprocessing`: as shared memory."""

from __future__ import annotations

import os
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .._core.device import CPU
from .._core.pickling import as_window, warn_of_hooks
from .._core.shared_memory import block_under, from_descriptor, from_link
from .._core.storage import UntypedStorage, storage_of
from .._core.tensor import Tensor
from ..nn.parameter import Parameter

__all__ = ["ForkingPickler", "fd_id", "init_reductions", "reduce_storage", "reduce_tensor"]


def fd_id(fd: int) -> tuple[int, int]:
    """What tells one open file from another, whatever their numbers."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def storage_from_descriptor(handle: Any, nbytes: int) -> UntypedStorage:
    """A storage on the memory behind an open file that another process sent."""
    return storage_of(from_descriptor(handle.detach(), nbytes), CPU)


def storage_from_link(path: str, nbytes: int) -> UntypedStorage:
    """A storage on the memory that another process gave a name to."""
    return storage_of(from_link(path, nbytes), CPU)


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """How another process gets at the memory of a storage, which becomes shared; without memory, its description."""
    place = storage.device
    if place.dataless or place.type != "cpu" or not storage.nbytes() or not reduction.HAVE_SEND_HANDLE:
        return storage.__reduce__()
    if storage.filename is not None:
        return UntypedStorage.from_file, (storage.filename, True, storage.nbytes())
    storage.share_memory_()
    block = block_under(storage._owner)
    if block is None:  # private pages of a file, or a worker's batch: this process alone knows where they are
        storage = storage.clone().share_memory_()
        block = block_under(storage._owner)
        assert block is not None
    if block.name is not None:
        return storage_from_link, (block.link(), block.nbytes)
    return storage_from_descriptor, (reduction.DupFd(block.descriptor), block.nbytes)


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


def init_reductions() -> None:
    """Register these with the pickler of `multiprocessing`."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
