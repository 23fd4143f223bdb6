"""`DistributedSampler`: each of several processes takes a share of the dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

from ..._core.generator import Generator
from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, beginning at `rank`, of an order that is the same in all processes.

    The order is a permutation that depends on `seed` and on the epoch that `set_epoch` was told; `shuffle=False` keeps
    the dataset's. So that all shares have the same length, some indices are repeated, or left out with `drop_last`.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group, "
                "or pass num_replicas and rank"
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(cast(Any, dataset))
        # Rounded to the nearest multiple that all shares can have, down or up.
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        from ... import randperm

        size = len(cast(Any, self.dataset))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices: list[int] = randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        padded = itertools.islice(itertools.cycle(indices), self.total_size) if indices else iter(())
        return itertools.islice(padded, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, so that each has another order. Call it in every process, before iterating."""
        self.epoch = epoch
