"""What a loader does for a dataset that is a pipe: shuffling by its own switch, one seed for all workers, shares."""

from __future__ import annotations

import sys
from typing import Any

from ...._core.generator import Generator
from ..sampler import random_seed


def is_iter_pipe(dataset: Any) -> bool:
    """Whether a dataset is an `IterDataPipe`: none is while nobody has loaded the class."""
    module = sys.modules.get("flambeau.utils.data.datapipes.datapipe")
    return module is not None and isinstance(dataset, module.IterDataPipe)


def with_shuffle(dataset: Any, shuffle: bool | None) -> Any:
    """The pipe with shuffling as the loader's argument says."""
    from ..graph_settings import apply_shuffle_settings

    return apply_shuffle_settings(dataset, shuffle)


def epoch_seed(loader: Any) -> int | None:
    """The seed of the orders of an epoch, the same for all workers; None for a dataset that is no pipe."""
    return random_seed(loader.generator) if is_iter_pipe(loader.dataset) else None


def begin_epoch(dataset: Any, seed: int | None) -> None:
    """Let the pipes draw their orders from the seed of the epoch."""
    if seed is not None:
        from ..graph_settings import apply_random_seed

        generator = Generator()
        generator.manual_seed(seed)
        apply_random_seed(dataset, generator)


def take_share(dataset: Any, num_workers: int, worker: int) -> None:
    """Leave this worker of this process its share."""
    from ..datapipes.iter.sharding import SHARDING_PRIORITIES
    from ..graph_settings import apply_sharding

    distributed = sys.modules.get("flambeau.distributed")
    if distributed is not None and distributed.is_initialized():
        number, rank = distributed.get_world_size(), distributed.get_rank()
        apply_sharding(dataset, number, rank, SHARDING_PRIORITIES.DISTRIBUTED)
    if num_workers:
        apply_sharding(dataset, num_workers, worker, SHARDING_PRIORITIES.MULTIPROCESSING)
