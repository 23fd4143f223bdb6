"""An iterator over several epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]

Item = TypeVar("Item")


class CyclingIterator(Generic[Item], Iterator[Item]):
    """The items of `n` epochs, from `start_epoch` on; `generator_fn` makes the iterator of an epoch by its number."""

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[Item]], start_epoch: int = 0) -> None:
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[Item]:
        return self

    def __next__(self) -> Item:
        for item in self._iter:
            return item
        self._epoch += 1
        if self._epoch >= self._n:
            raise StopIteration
        self._iter = self._generator_fn(self._epoch)
        return next(self)
