"""A function that programs gave to loaders of pipes before loaders divided samples themselves."""

from __future__ import annotations

import warnings

__all__ = ["worker_init_fn"]


def worker_init_fn(worker_id: int) -> None:
    """Nothing: the loader divides the samples."""
    warnings.warn(
        "Usage of `backward_compatibility.worker_init_fn` is deprecated as `DataLoader` automatically applies sharding "
        "in every worker",
        FutureWarning,
        stacklevel=2,
    )
