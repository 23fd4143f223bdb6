"""Steps that make one pipe of several that are read by index."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _check(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """One pipe after the other, under indices from 0."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        _check(datapipes)
        self.datapipes: tuple[Any, ...] = datapipes

    def __getitem__(self, index: Any) -> Any:
        before = 0
        for pipe in self.datapipes:
            if index - before < len(pipe):
                return pipe[index - before]
            before += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


def _item(pipe: Any, index: Any) -> Any:
    try:
        return pipe[index]
    except IndexError as error:
        raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[Any]):
    """Tuples of what each pipe has at an index."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        _check(datapipes)
        self.datapipes: tuple[Any, ...] = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([_item(pipe, index) for pipe in self.datapipes])

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)
