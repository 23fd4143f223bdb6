"""Datasets, samplers, and loaders that bring batches of them, with workers and without."""

from __future__ import annotations

import importlib
from typing import Any

from .dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

_LATER = {
    **dict.fromkeys(("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"), "datapipes.datapipe"),
    **dict.fromkeys(
        (
            "argument_validation",
            "functional_datapipe",
            "guaranteed_datapipes_determinism",
            "non_deterministic",
            "runtime_validation",
            "runtime_validation_disabled",
        ),
        "datapipes._decorator",
    ),
}
_MODULES = ("backward_compatibility", "datapipes", "graph", "graph_settings")

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    """Pipes load on first use."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        importlib.import_module(f"{__name__}.datapipes")  # all steps: a pipe has them as methods
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
