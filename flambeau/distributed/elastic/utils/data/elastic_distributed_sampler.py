"""A sampler that goes on where another number of processes has stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ....._core.generator import Generator
from ....._ops.random.draws import randperm
from .....utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """A `DistributedSampler` that begins at the sample `start_index` of the dataset."""

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ) -> None:
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self._left = len(dataset) - start_index
        self.num_samples = math.ceil(self._left / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; it begins at the same sample."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = randperm(self._left, generator=Generator().manual_seed(self.epoch))
        indices: list[int] = (order + self.start_index).tolist()
        indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])
