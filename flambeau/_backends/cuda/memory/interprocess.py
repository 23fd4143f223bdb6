"""Memory of a device that several processes see, by the handles of the runtime library.

The process that owns a block lends it: it keeps the block, and sets a number in memory that both processes see. The one
that borrows it opens the handle of the piece that the block is in, and sets the number to zero when nothing there uses
the block any more. The owner looks at these numbers whenever it lends, and in `torch.cuda.ipc_collect`.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, NamedTuple

import numpy as np

from ...._core.process.locks import new_lock
from ...._core.storage import UntypedStorage
from ..arrays.array import DeviceArray, over
from ..runtime.devices import on_device, ordinal_of
from ..runtime.driver import driver
from .block import PooledMemory

_NUMBERS = 4096
"""So many loans have their numbers in one piece of shared memory."""


class Loan(NamedTuple):
    """What another process needs to know of a block of memory."""

    handle: bytes
    offset: int
    nbytes: int
    ordinal: int
    owner: int
    """The process that it belongs to."""
    numbers: UntypedStorage
    place: int
    """Which of the numbers is about it."""


class _Lender:
    """The loans of this process that have not come back."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.loans: dict[tuple[int, int], tuple[Any, DeviceArray]] = {}
        """By the numbers' memory and the place in it: the numbers, and the array that others read."""
        self.numbers: UntypedStorage | None = None
        self.used = 0

    def place(self) -> tuple[UntypedStorage, int]:
        """A number for one more loan."""
        if self.numbers is None or self.used == _NUMBERS:
            self.numbers, self.used = UntypedStorage(_NUMBERS * 8).share_memory_(), 0
        self.used += 1
        return self.numbers, self.used - 1

    def collect(self) -> None:
        """Forget the loans that came back."""
        for key, (numbers, _) in list(self.loans.items()):
            if not numbers[key[1]]:
                del self.loans[key]


_LENDER = _Lender()


def collect() -> None:
    """Free what other processes have given back."""
    with _LENDER.lock:
        _LENDER.collect()


def _numbers_in(storage: UntypedStorage) -> Any:
    return storage.bytes().view(np.int64)


def _piece_of(pointer: int) -> int:
    """Where the memory begins that was taken from the device together with a place."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    ask = ctypes.CDLL("libcuda.so.1").cuMemGetAddressRange_v2
    if ask(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer)):
        raise RuntimeError("the memory of this CUDA tensor cannot be shared with other processes: clone it first")
    return int(base.value)


def lend(storage: UntypedStorage) -> Loan:
    """The memory of a storage for another process, which may read and write it as soon as it knows of it."""
    array = storage.bytes()
    if isinstance(array.memory, _Borrowed):
        raise RuntimeError(
            "Attempted to send CUDA tensor received from another process; this is not currently supported. Consider "
            "cloning before sending."
        )
    ordinal = ordinal_of(array) or 0
    with on_device(ordinal), _LENDER.lock:
        _LENDER.collect()
        library = driver().library
        library.get_current_stream().synchronize()  # the other process does not know what is under way here
        memory = array.memory
        if isinstance(memory, PooledMemory) and driver().pool.grows(memory.block):
            raise RuntimeError(
                "the memory of this CUDA tensor cannot be shared with other processes, since its segment grows: make "
                "the tensor with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False"
            )
        base = _piece_of(array.pointer)
        numbers, place = _LENDER.place()
        own = _numbers_in(numbers)
        own[place] = 1
        _LENDER.loans[id(numbers), place] = own, array
        handle = bytes(library.runtime.ipcGetMemHandle(base))
        return Loan(handle, array.pointer - base, array.nbytes, ordinal, os.getpid(), numbers, place)


class _Opened:
    """A piece of another process's memory; closed with the last block of it that is used here."""

    def __init__(self, handle: bytes) -> None:
        self._runtime = driver().library.runtime
        self.pointer: int = self._runtime.ipcOpenMemHandle(handle)

    def __del__(self) -> None:
        if "pointer" in vars(self):
            self._runtime.ipcCloseMemHandle(self.pointer)


_OPENED: weakref.WeakValueDictionary[tuple[int, bytes], _Opened] = weakref.WeakValueDictionary()
"""By device and handle: opening one twice in a process is an error."""


class _Borrowed:
    """Memory of another process, which learns when nobody here uses it any more."""

    def __init__(self, loan: Loan, piece: _Opened) -> None:
        self._piece = piece
        self._loan = loan
        self._synchronize = driver().library.runtime.deviceSynchronize
        self.ptr = piece.pointer + loan.offset
        self.ordinal = loan.ordinal

    def __del__(self) -> None:
        self._synchronize()  # what was started here may still read it
        _numbers_in(self._loan.numbers)[self._loan.place] = 0


def borrow(loan: Loan) -> DeviceArray:
    """The bytes that another process lends, or those of this one that have come back to it."""
    if loan.owner == os.getpid():
        with _LENDER.lock:
            for (_, place), (numbers, array) in list(_LENDER.loans.items()):
                if place == loan.place and np.shares_memory(numbers, _numbers_in(loan.numbers)):
                    numbers[place] = 0
                    return array
    with on_device(loan.ordinal):
        key = loan.ordinal, loan.handle
        piece = _OPENED.get(key)
        if piece is None:
            piece = _OPENED.setdefault(key, _Opened(loan.handle))
        memory = _Borrowed(loan, piece)
        return over(memory, memory.ptr, (loan.nbytes,), np.dtype(np.uint8))
