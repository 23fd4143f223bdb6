"""Memory that the processes of one machine share.

Each process has an arena: a file in memory that has no name, of which the others get a descriptor over the connection
with them. So nothing is left behind, however a process ends. It grows by extents, which stay where they are; a peer
maps an extent when it first hears of it, and then reads and writes it in place.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import struct
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._core.process.locks import new_lock

IS_AVAILABLE = hasattr(os, "memfd_create")
_SMALLEST = 1 << 16


class Place(NamedTuple):
    """Where some bytes are: an extent of a process's arena, and which part of it."""

    extent: int
    extent_length: int
    start: int
    length: int

    def pack(self) -> memoryview:
        """In bytes, for a message."""
        return memoryview(_PLACE.pack(*self))

    @staticmethod
    def unpack(message: bytes) -> Place:
        """What a message says."""
        return Place(*_PLACE.unpack(message))


_PLACE = struct.Struct("<4Q")
PLACE_LENGTH = _PLACE.size


class Extent:
    """A piece of the own arena."""

    __slots__ = ("address", "is_passing", "memory", "offset")

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self.is_passing = False
        """Whether nobody changes what is in it once it was given to a collective."""
        self.memory = memory
        self.offset = offset
        self.address: int = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]

    def bytes(self) -> Any:
        """All of it."""
        return np.frombuffer(self.memory, np.uint8)

    def place(self, start: int, length: int) -> Place:
        """Where a part of it is."""
        return Place(self.offset, len(self.memory), start, length)


class Arena:
    """The memory that this process shares: extents, whose lengths are powers of two."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("flambeau", getattr(os, "MFD_CLOEXEC", 0))
        self._length = 0
        self._free: dict[int, list[Extent]] = {}
        self._extents: list[Extent] = []
        """By address."""
        self._lock = new_lock()

    def take(self, length: int) -> Extent:
        """Memory of at least this length, whose content is anything."""
        length = max(_SMALLEST, 1 << (length - 1).bit_length())
        with self._lock:
            free = self._free.get(length)
            if free:
                return free.pop()
            offset, self._length = self._length, self._length + length
            os.ftruncate(self.descriptor, self._length)
            made = Extent(mmap.mmap(self.descriptor, length, offset=offset), offset)
            bisect.insort(self._extents, made, key=_address)
            return made

    def give_back(self, extent: Extent) -> None:
        """Let the memory be taken again.

        Arrays end anywhere, when garbage is collected in the middle of `take` too: so this waits for no lock, and takes
        one step that other threads see whole or not at all.
        """
        extent.is_passing = False
        self._free.setdefault(len(extent.memory), []).append(extent)

    def array(self, count: int, array_type: np.dtype[Any], passing: bool = False) -> Any:
        """A flat array here; its memory is given back when nothing refers to it any more."""
        extent = self.take(max(1, count * array_type.itemsize))
        extent.is_passing = passing
        whole = np.frombuffer(extent.memory, np.uint8, count * array_type.itemsize)
        weakref.finalize(whole, self.give_back, extent)  # views of views refer to it itself
        return whole.view(array_type)

    def place_of(self, array: Any) -> Place | None:
        """Where a contiguous array is, if it is here."""
        extent = self._extent_of(array)
        return None if extent is None else extent.place(_address_of(array) - extent.address, array.nbytes)

    def _extent_of(self, array: Any) -> Extent | None:
        address = _address_of(array)
        index = bisect.bisect_right(self._extents, address, key=_address) - 1
        if index < 0:
            return None
        extent = self._extents[index]
        return extent if address - extent.address + array.nbytes <= len(extent.memory) else None

    def place_of_passing(self, arrays: Sequence[Any]) -> Place | None:
        """Where contiguous arrays are, if they are here, one behind the other, and nobody changes them any more."""
        extent = self._extent_of(arrays[0])
        if extent is None or not extent.is_passing:
            return None
        first = extent.place(_address_of(arrays[0]) - extent.address, arrays[0].nbytes)
        ends = itertools.accumulate((each.nbytes for each in arrays), initial=_address_of(arrays[0]))
        if any(_address_of(array) != end for array, end in zip(arrays, ends, strict=False)):
            return None
        whole = first._replace(length=sum(array.nbytes for array in arrays))
        return whole if whole.start + whole.length <= whole.extent_length else None

    def close(self) -> None:
        """Close the descriptor; what is mapped stays."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _address(extent: Extent) -> int:
    return extent.address


class PeerMemory:
    """The arena of another process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mapped: dict[int, mmap.mmap] = {}

    def window(self, place: Place) -> Any:
        """The bytes there, to be read and written."""
        found = self._mapped.get(place.extent)
        if found is None:
            found = mmap.mmap(self._descriptor, place.extent_length, offset=place.extent)
            self._mapped[place.extent] = found
        return np.frombuffer(found, np.uint8, place.length, place.start)

    def close(self) -> None:
        """Close the descriptor; what is mapped goes when nobody looks at it any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._mapped.clear()
