"""Samplers draw what PyTorch's draw, and leave their generators where PyTorch's are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome
from tests.utils.data.test_dataset import data_of

SAMPLERS: dict[str, Callable[..., Any]] = {
    "sequential": lambda D, g: D.SequentialSampler(range(5)),
    "random": lambda D, g: D.RandomSampler(range(10), generator=g),
    "random, fewer": lambda D, g: D.RandomSampler(range(10), num_samples=4, generator=g),
    "random, more": lambda D, g: D.RandomSampler(range(5), num_samples=12, generator=g),
    "random, twice": lambda D, g: D.RandomSampler(range(5), num_samples=10, generator=g),
    "replacement": lambda D, g: D.RandomSampler(range(10), True, generator=g),
    "replacement, many": lambda D, g: D.RandomSampler(range(10), True, 70, g),
    "replacement, blocks": lambda D, g: D.RandomSampler(range(10), True, 64, g),
    "subset": lambda D, g: D.SubsetRandomSampler([3, 1, 4, 1, 5], g),
    "weighted": lambda D, g: D.WeightedRandomSampler([0.1, 0.0, 0.7, 0.2], 20, generator=g),
    "weighted, no replacement": lambda D, g: D.WeightedRandomSampler([0.1, 0.3, 0.7, 0.2], 3, False, g),
    "batches": lambda D, g: D.BatchSampler(D.RandomSampler(range(10), generator=g), 4, False),
    "whole batches": lambda D, g: D.BatchSampler(D.RandomSampler(range(10), generator=g), 4, True),
    "batches of a range": lambda D, g: D.BatchSampler(range(6), 3, False),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("seed", [None, 3])
@differential
def test_orders(T: Any, name: str, seed: int | None) -> Any:
    generator = None if seed is None else T.Generator().manual_seed(seed)
    sampler = SAMPLERS[name](data_of(T), generator)
    after = T.rand(1), None if generator is None else T.rand(1, generator=generator)
    return len(sampler), list(sampler), list(sampler), after, T.rand(1)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(("size", "replicas"), [(7, 3), (2, 5), (9, 3), (0, 2)])
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"shuffle": False}, {"seed": 5}])
@differential
def test_distributed(T: Any, epoch: int, size: int, replicas: int, options: dict[str, Any]) -> Any:
    samplers = [data_of(T).DistributedSampler(range(size), replicas, rank, **options) for rank in range(replicas)]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    shares = [outcome(lambda sampler=sampler: list(sampler)) for sampler in samplers] if size else []
    return shares, [(len(each), each.num_samples, each.total_size) for each in samplers]


ERRORS: dict[str, tuple[Callable[..., Any], str]] = {
    "abstract": (lambda D: list(D.Sampler()), ""),
    "with argument": (lambda D: D.Sampler([1]), "takes no arguments"),
    "replacement": (lambda D: D.RandomSampler(range(3), replacement=3), "should be a boolean value"),
    "no samples": (lambda D: D.RandomSampler([]), "should be a positive integer value, but got num_samples=0"),
    "samples": (lambda D: D.RandomSampler(range(3), num_samples=1.5), "should be a positive integer value"),
    "weighted samples": (lambda D: D.WeightedRandomSampler([1.0], True), "should be a positive integer value"),
    "weights": (lambda D: D.WeightedRandomSampler([[1.0]], 1), "should be a 1d sequence"),
    "weighted replacement": (lambda D: D.WeightedRandomSampler([1.0], 1, 1), "should be a boolean value"),
    "too many": (lambda D: list(D.WeightedRandomSampler([1.0], 2, False)), "without replacement"),
    "batch size": (lambda D: D.BatchSampler(range(3), 0, False), "batch_size=0"),
    "bool batch size": (lambda D: D.BatchSampler(range(3), True, False), "batch_size=True"),
    "drop_last": (lambda D: D.BatchSampler(range(3), 2, 1), "should be a boolean value"),
    "no group": (lambda D: D.DistributedSampler(range(3)), "init_process_group"),
    "rank": (lambda D: D.DistributedSampler(range(3), 2, 2), "rank should be in the interval [0, 1]"),
}


@pytest.mark.parametrize("case", ERRORS)
@differential
def test_errors(T: Any, case: str) -> Any:
    action, phrase = ERRORS[case]
    return outcome(lambda: action(data_of(T)), phrase)
