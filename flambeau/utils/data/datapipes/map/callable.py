"""The step that applies a function to samples that are read by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import check_picklable

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """`fn` of each sample."""

    def __init__(self, datapipe: MapDataPipe[Any], fn: Callable[[Any], Any] = default_fn) -> None:
        super().__init__()
        self.datapipe: Any = datapipe
        check_picklable(fn)
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])
