"""Steps that make one pipe of several: after, beside and in turn with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from .splitting import DemultiplexerIterDataPipe, ForkerIterDataPipe

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


class _Several(IterDataPipe[Any]):
    """A pipe of several others."""

    datapipes: tuple[Any, ...]

    def _lengths(self) -> list[int]:
        if not all(isinstance(pipe, Sized) for pipe in self.datapipes):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return [len(pipe) for pipe in self.datapipes]


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Several):
    """One pipe after the other."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(self._lengths())


@functional_datapipe("zip")
class ZipperIterDataPipe(_Several):
    """Tuples of one sample of each pipe, until one has no more."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(self._lengths())


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Several):
    """One sample of each pipe in turn, until one has no more."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(self._lengths()) * len(self.datapipes)
