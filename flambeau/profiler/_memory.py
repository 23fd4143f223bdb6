"""What memory tensors have over the time of a profile: who made it, when it came and went, what it was for."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

from .._core.storage import owner_of
from .._core.tensor import Tensor


class Block(NamedTuple):
    """Memory that a tensor brought with it."""

    nbytes: int
    shape: tuple[int, ...]
    dtype: str
    start: int
    """When it was first seen, in nanoseconds; 0 if it was there before the profile."""
    note: int
    """The number of the call that made it, or that was the first to read it."""
    is_parameter: bool


class _Watch(weakref.ref[Any]):
    """A weak reference to the array that owns a block, with the number of the block and the id of the array."""

    __slots__ = ("key", "number")
    key: int
    number: int


class MemoryLog:
    """The blocks that ops were seen to read and to make, and when they were freed."""

    def __init__(self) -> None:
        self._seen: list[tuple[Any, ...]] = []
        """The fields of the blocks."""
        self.freed: dict[int, int] = {}
        """When a block was freed, by its number."""
        self._watches: dict[int, _Watch] = {}
        """Of the living blocks, by the id of the array that owns them."""
        self._is_open = True

    @property
    def blocks(self) -> list[Block]:
        """All blocks, by number."""
        return [Block(*each) for each in self._seen]

    def _free(self, watch: weakref.ref[Any]) -> None:
        assert isinstance(watch, _Watch)
        del self._watches[watch.key]
        if self._is_open:
            self.freed[watch.number] = perf_counter_ns()

    def close(self) -> None:
        """What is freed from now on lived to the end of the profile."""
        self._is_open = False

    def seen(self, args: Sequence[Any], result: Any, time: int, note: int) -> int:
        """Note the blocks of a call that are new; the bytes of those that it made."""
        watches = self._watches
        for each in args:
            if isinstance(each, Tensor):
                if id(each._array) not in watches:
                    self._note(each, 0, note)
            elif type(each) is list or type(each) is tuple:
                self._inside(each, 0, note)
        if isinstance(result, Tensor):
            return self._note(result, time, note)
        return self._inside(result, time, note) if type(result) is list or type(result) is tuple else 0

    def _inside(self, values: Sequence[Any], time: int, note: int) -> int:
        """Note the tensors of a list; the sum of what the notes return."""
        total = 0
        for each in values:
            if isinstance(each, Tensor):
                total += self._note(each, time, note)
            elif type(each) is list or type(each) is tuple:
                total += self._inside(each, time, note)
        return total

    def _note(self, tensor: Tensor, time: int, note: int) -> int:
        array = tensor._array
        owner = array if array.base is None else owner_of(array)
        key = id(owner)
        kind = tensor._kind
        if key in self._watches or kind.dataless:
            return 0
        try:
            watch = _Watch(owner, self._free)
        except TypeError:  # another library's array that cannot be watched
            return 0
        watch.key, watch.number = key, len(self._seen)
        self._watches[key] = watch
        is_parameter = time == 0 and tensor._requires_grad and tensor._grad_fn is None
        nbytes: int = owner.nbytes
        self._seen.append((nbytes, array.shape, kind.dtype.name, time, note, is_parameter))
        return nbytes
