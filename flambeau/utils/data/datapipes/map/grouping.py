"""The step that makes batches of samples that are read by index."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Lists of `batch_size` samples; the last may be shorter, or is dropped."""

    def __init__(
        self,
        datapipe: MapDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type[DataChunk[Any]] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe: Any = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: Any) -> DataChunk[Any]:
        first, end = index * self.batch_size, min((index + 1) * self.batch_size, len(self.datapipe))
        if index >= len(self):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[place] for place in range(first, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
