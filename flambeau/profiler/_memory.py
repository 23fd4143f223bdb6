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
    """A weak reference to the array that owns a block, with the number of the block."""

    __slots__ = ("number",)
    number: int


class MemoryLog:
    """The blocks that ops were seen to read and to make, and when they were freed."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.freed: dict[int, int] = {}
        """When a block was freed, by its number."""
        self._watches: dict[int, _Watch] = {}
        """Of the living blocks, by the id of the array that owns them."""
        self._is_open = True

    def _free(self, watch: weakref.ref[Any]) -> None:
        assert isinstance(watch, _Watch)
        if self._is_open:
            self.freed[watch.number] = perf_counter_ns()

    def close(self) -> None:
        """What is freed from now on lived to the end of the profile."""
        self._is_open = False

    def seen(self, args: Sequence[Any], result: Any, time: int, note: int) -> int:
        """Note the blocks of a call that are new; the bytes of those that it made."""
        for each in args:
            if isinstance(each, Tensor):
                self._note(each, 0, note)
            elif type(each) in (list, tuple):
                self._inside(each, 0, note)
        if isinstance(result, Tensor):
            return self._note(result, time, note)
        return self._inside(result, time, note) if type(result) in (list, tuple) else 0

    def _inside(self, values: Sequence[Any], time: int, note: int) -> int:
        """The same for tensors in lists."""
        total = 0
        for each in values:
            if isinstance(each, Tensor):
                total += self._note(each, time, note)
            elif type(each) in (list, tuple):
                total += self._inside(each, time, note)
        return total

    def _note(self, tensor: Tensor, time: int, note: int) -> int:
        array = tensor._array
        owner = array if array.base is None else owner_of(array)
        key = id(owner)
        watch = self._watches.get(key)
        if (watch is not None and watch() is owner) or tensor._kind.dataless:
            return 0
        try:
            watch = _Watch(owner, self._free)
        except TypeError:  # another library's array that cannot be watched
            return 0
        watch.number = len(self.blocks)
        self._watches[key] = watch
        is_parameter = time == 0 and tensor._requires_grad and tensor._grad_fn is None
        nbytes: int = owner.nbytes
        self.blocks.append(Block(nbytes, tuple(array.shape), tensor._kind.dtype.name, time, note, is_parameter))
        return nbytes
