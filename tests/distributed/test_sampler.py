"""`DistributedSampler` in a group of processes, and a run that goes on with another number of them."""

from __future__ import annotations

import itertools

import pytest

import flambeau as torch
from flambeau.distributed.testing import run_in_threads
from flambeau.utils.data import DataLoader, TensorDataset
from flambeau.utils.data.distributed import DistributedSampler

DATASET = TensorDataset(torch.arange(48))


def test_the_group_says_how_many_there_are() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(DATASET)
    shares = run_in_threads(lambda rank: list(DistributedSampler(DATASET, shuffle=False)), 3)
    assert shares == [list(range(rank, 48, 3)) for rank in range(3)]


def test_a_run_goes_on_with_another_number_of_processes() -> None:
    def batches(rank: int, start: int, steps: int | None) -> list[int]:
        sampler = DistributedSampler(DATASET, seed=3)
        sampler.set_epoch(5)
        sampler.set_start(start)
        loader = DataLoader(DATASET, batch_size=2, sampler=sampler)
        found = [batch.tolist() for (batch,) in loader]
        assert len(found) == len(loader)
        return [index for batch in found[:steps] for index in batch]

    before = run_in_threads(lambda rank: batches(rank, 0, 3), 4)  # 3 steps with 2 samples on 4 processes
    after = run_in_threads(lambda rank: batches(rank, 3 * 2 * 4, None), 2)
    assert all(len(each) == 12 for each in after)
    assert sorted(itertools.chain(*before, *after)) == list(range(48))
    sampler = DistributedSampler(DATASET, 4, 0)
    sampler.set_start(40)
    assert len(sampler) == 2
    sampler.set_epoch(1)
    assert len(sampler) == 12
