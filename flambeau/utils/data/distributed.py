"""`DistributedSampler`: each of several processes takes a share of the dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

from ..._core.generator import Generator
from ..._core.slots import SLOTS
from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, beginning at `rank`, of an order that is the same in all processes.

    The order is a permutation that depends on `seed` and on the epoch that `set_epoch` was told; `shuffle=False` keeps
    the dataset's. So that all shares have the same length, some indices are repeated, or left out with `drop_last`.

    Args:
        dataset (Dataset): the dataset.
        num_replicas (int, optional): the number of processes; None asks `torch.distributed`.
        rank (int, optional): the number of this process; None asks `torch.distributed`.
        shuffle (bool): whether the order is random; `set_epoch` makes another one for each pass. Default: `True`.
        seed (int): the seed of that order, the same in all processes. Default: `0`.
        drop_last (bool): whether samples that do not fill a batch, or a share for all processes, are left out.
            Default: `False`.

    Example:
        >>> list(torch.utils.data.DistributedSampler(range(6), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 5]
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
            known = SLOTS.rank_and_size()
            if known is None:
                raise ValueError(
                    "Default process group has not been initialized, please make sure to call init_process_group, "
                    "or pass num_replicas and rank"
                )
            num_replicas = known[1] if num_replicas is None else num_replicas
            rank = known[0] if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        self.set_start(0)

    def __iter__(self) -> Iterator[int]:
        from ... import randperm

        size = len(cast(Any, self.dataset))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices: list[int] = randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        left = indices[self._start :]
        padded = itertools.islice(itertools.cycle(left), self.total_size) if left else iter(())
        return itertools.islice(padded, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, so that each has another order. Call it in every process, before iterating."""
        self.epoch = epoch
        self.set_start(0)

    def set_start(self, start: int) -> None:
        """Let the epoch begin behind the first `start` samples of its order; call it after `set_epoch`.

        A run that is continued, on any number of processes, so takes the samples that it has not had: `start` is the
        number of steps made in the epoch, times the batch size, times the number of processes that made them.
        """
        if start < 0:
            raise ValueError(f"an epoch begins behind 0 or more samples, not {start}")
        left = max(len(cast(Any, self.dataset)) - start, 0)
        self._start = start
        # Rounded to the nearest multiple that all shares can have, down or up.
        self.num_samples = left // self.num_replicas if self.drop_last else -(-left // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
