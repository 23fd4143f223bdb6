"""The start of a pipe: any iterable."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from ..datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe[Any]):
    """The samples of an iterable, of which every iteration reads a copy, so that changing samples changes no other."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:  # generators cannot be copied
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        if isinstance(self.iterable, Sized):
            return len(self.iterable)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
