"""Batches from a worker process to the main process, through memory that both see.

Memory is passed as open files that have no name (`memfd_create`, elsewhere a temporary file that is unlinked at once):
it goes away with the last process that maps it, however that ends, so there is nothing that could be left behind. A
worker uses a block again once the main process has dropped every tensor in it, so pages are mapped and cleared once.
Where files cannot be passed between processes, everything is sent as bytes.
"""

from __future__ import annotations

import io
import itertools
import math
import mmap
import os
import pickle
import socket
import weakref
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any, NamedTuple

import numpy as np

from ...._core.device import CPU
from ...._core.pickling import reduce_tensor
from ...._core.shared_memory import new_file
from ...._core.storage import UntypedStorage, address_of, needed_bytes, storage_of
from ...._core.tensor import Tensor
from ....nn.parameter import Parameter

SMALL = 1 << 15
"""Below so many bytes, sending costs less than sharing."""
MOST_IDLE = 16
"""How many unused blocks a worker keeps."""
MOST_HELD = 64
"""How many blocks of one worker the main process holds; what comes after is copied, as each block is an open file."""
CAN_SHARE = hasattr(socket, "send_fds")


class Block:
    """A piece of shared memory in the worker that made it."""

    __slots__ = ("__weakref__", "address", "descriptor", "memory", "number", "size", "user", "with_main")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size
        self.descriptor = new_file(size)  # open until it has been passed on
        self.memory = mmap.mmap(self.descriptor, size)
        self.address = address_of(np.frombuffer(self.memory, np.uint8))
        self.with_main = False
        self.user: weakref.ref[Any] | None = None

    def is_idle(self) -> bool:
        return not self.with_main and (self.user is None or self.user() is None)

    def window(self, nbytes: int) -> Any:
        """The first bytes of the memory as an array; the block is in use as long as that lives."""
        array = np.frombuffer(self.memory, np.uint8, nbytes)
        self.user = weakref.ref(array)
        return array


class Arena:
    """The shared memory of one worker process."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}  # by address
        self._numbers = itertools.count()

    def take(self, nbytes: int) -> Block:
        """An idle block of at least `nbytes`, if need be a new one."""
        fitting = [block for block in self._blocks.values() if block.size >= nbytes and block.is_idle()]
        if fitting:
            best = min(fitting, key=lambda block: block.size)
            if best.size <= 4 * nbytes:
                return best
        granule = max(mmap.PAGESIZE, 1 << max(0, nbytes.bit_length() - 3))
        block = Block(next(self._numbers), -(-nbytes // granule) * granule)
        self._blocks[block.address] = block
        return block

    def at(self, address: int) -> Block | None:
        """The block whose memory begins at `address`."""
        return self._blocks.get(address)

    def give_back(self, numbers: set[int]) -> None:
        """The main process holds nothing in these blocks any more."""
        for block in self._blocks.values():
            if block.number in numbers:
                block.with_main = False

    def retire(self) -> list[int]:
        """Forget blocks that are idle beyond the number that is kept; the main process must forget them too."""
        idle = [block for block in self._blocks.values() if block.descriptor < 0 and block.is_idle()]
        surplus = idle[: max(0, len(idle) - MOST_IDLE)]
        for block in surplus:
            del self._blocks[block.address]
        return [block.number for block in surplus]

    def unsent(self) -> list[Block]:
        """Blocks that the main process holds without having been given their files."""
        return [block for block in self._blocks.values() if block.with_main and block.descriptor >= 0]


_ARENA: Arena | None = None


def open_arena() -> Arena | None:
    """Begin to make batches in shared memory, in a worker process."""
    global _ARENA
    _ARENA = Arena() if CAN_SHARE else None
    return _ARENA


def in_worker_process() -> bool:
    """Whether what is made here goes to another process through shared memory."""
    return _ARENA is not None


def shared_array(shape: tuple[int, ...], array_type: Any) -> Any:
    """An uninitialised array in the shared memory of this worker process."""
    assert _ARENA is not None
    nbytes = math.prod(shape) * array_type.itemsize
    return np.ndarray(shape, array_type, _ARENA.take(nbytes).window(nbytes))


# Pickling with large pieces set aside ---------------------------------------------------------------------------------


def _attach_storage(buffer: Any) -> UntypedStorage:
    """A storage over memory that arrived with a pickle."""
    array = buffer if type(buffer) is np.ndarray else np.frombuffer(buffer, np.uint8)
    return storage_of(array, CPU)


_OWN_REDUCTIONS = (Tensor, Parameter, UntypedStorage)
"""What is packed here in another way than `multiprocessing` has registered for its queues."""


class _Packer(reduction.ForkingPickler):
    """A pickler that hands out the memory of storages and arrays instead of copying it into the stream."""

    def __init__(self, file: Any, set_aside: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(file, 5, True, set_aside)
        # What `multiprocessing` registers for tensors is for its own queues.
        table = self.dispatch_table
        self.dispatch_table: Any = {kind: how for kind, how in table.items() if kind not in _OWN_REDUCTIONS}

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is UntypedStorage and not thing.device.dataless:
            return _attach_storage, (pickle.PickleBuffer(thing.bytes()),)
        if isinstance(thing, Tensor) and not thing._kind.dataless:
            array = thing._array
            used = needed_bytes(array.shape, array.strides, 0, array.itemsize)
            if 2 * used < thing.untyped_storage().nbytes():
                # A row of a large tensor: the rest of it stays where it is.
                alone = Tensor._from_parts((array.copy(), thing._kind, [0, None]))
                alone._requires_grad = thing._requires_grad
                return reduce_tensor(alone) if type(thing) is Tensor else NotImplemented
        return NotImplemented


class Parcel(NamedTuple):
    """A pickled object: its stream, or None if that is in the first of the blocks; and the blocks' (number, bytes)."""

    stream: bytes | None
    blocks: list[tuple[int, int]]


def pack(thing: Any, arena: Arena | None) -> Parcel:
    """Pickle `thing` with its large pieces in `arena`, copied there unless they have been made there."""
    blocks: list[tuple[int, int]] = []
    borrowed: list[Block] = []

    def lend(block: Block, nbytes: int) -> None:
        block.with_main = True
        borrowed.append(block)
        blocks.append((block.number, nbytes))

    def set_aside(buffer: pickle.PickleBuffer) -> bool:
        content = np.frombuffer(buffer.raw(), np.uint8)
        if arena is None or content.nbytes < SMALL:
            return True
        block = arena.at(address_of(content))
        if block is None or block.with_main:
            block = arena.take(content.nbytes)
            block.window(content.nbytes)[:] = content
        lend(block, content.nbytes)
        return False

    file = io.BytesIO()
    try:
        _Packer(file, set_aside).dump(thing)
    except BaseException:
        for block in borrowed:
            block.with_main = False
        raise
    stream = file.getvalue()
    if arena is None or len(stream) < 4 * SMALL:
        return Parcel(stream, blocks)
    block = arena.take(len(stream))
    block.window(len(stream))[:] = np.frombuffer(stream, np.uint8)
    lend(block, len(stream))
    return Parcel(None, [blocks[-1], *blocks[:-1]])


class Mapped:
    """What the main process sees of one worker's shared memory."""

    def __init__(self) -> None:
        self._memories: dict[int, mmap.mmap] = {}
        self._held: dict[int, weakref.ref[Any]] = {}
        self._freed: set[int] = set()

    def take_freed(self) -> set[int]:
        """Blocks that nothing here refers to any more, and that have not been reported to the worker yet."""
        taken = set()
        while self._freed:  # others are added meanwhile, in any thread
            taken.add(self._freed.pop())
        return taken

    def keep_freed(self, numbers: set[int]) -> None:
        """Keep numbers of freed memory that could not be reported."""
        self._freed.update(numbers)

    def add(self, number: int, size: int, descriptor: int) -> None:
        """Map a new block."""
        try:
            self._memories[number] = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def forget(self, numbers: list[int]) -> None:
        """Unmap blocks that the worker will not use again."""
        for number in numbers:
            del self._memories[number]

    def _hold(self, number: int, nbytes: int) -> Any:
        array = np.frombuffer(self._memories[number], np.uint8, nbytes)
        if len(self._held) >= MOST_HELD:
            self._freed.add(number)
            return array.copy()
        held, freed = self._held, self._freed

        def drop(_: Any) -> None:
            held.pop(number, None)
            freed.add(number)

        held[number] = weakref.ref(array, drop)
        return array

    def unpack(self, parcel: Parcel) -> Any:
        """The object in a parcel; its large pieces stay in the shared memory."""
        buffers = [self._hold(*block) for block in parcel.blocks]
        stream: Any = parcel.stream
        if stream is None:
            stream, *buffers = buffers
        return pickle.loads(stream, buffers=buffers)

    def discard(self, parcel: Parcel) -> None:
        """Nobody wants what is in a parcel."""
        self._freed.update(number for number, _ in parcel.blocks)


# What a worker needs to start, for processes that are not forked ------------------------------------------------------


class Luggage:
    """An object on its way to processes that are started by spawn or forkserver.

    It is pickled once for all of them. Large tensors and arrays in it are in shared memory; each process sees them
    through a private mapping: unchanged pages are common to all, and what one changes the others do not see.
    """

    def __init__(self, thing: Any) -> None:
        self._files: list[tuple[int, int]] = []
        file = io.BytesIO()
        try:
            _Packer(file, self._set_aside).dump(thing)
        except BaseException:
            self.close()
            raise
        self._stream = file.getvalue()

    def _set_aside(self, buffer: pickle.PickleBuffer) -> bool:
        content = np.frombuffer(buffer.raw(), np.uint8)
        if not CAN_SHARE or content.nbytes < SMALL:
            return True
        descriptor = new_file(content.nbytes)
        self._files.append((descriptor, content.nbytes))
        with mmap.mmap(descriptor, content.nbytes) as memory:
            memory[:] = content.data
        return False

    def __getstate__(self) -> Any:
        return self._stream, [(reduction.DupFd(descriptor), nbytes) for descriptor, nbytes in self._files]

    def __setstate__(self, state: Any) -> None:
        self._stream, handles = state
        self._files = [(handle.detach(), nbytes) for handle, nbytes in handles]

    def unpack(self) -> Any:
        """The object, in the process that received it."""
        buffers = []
        for descriptor, nbytes in self._files:
            memory = mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_COPY)
            buffers.append(np.frombuffer(memory, np.uint8))
        self.close()
        return pickle.loads(self._stream, buffers=buffers)

    def close(self) -> None:
        """Let go of the shared memory, once every process has it."""
        for descriptor, _ in self._files:
            os.close(descriptor)
        self._files = []
