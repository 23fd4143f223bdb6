"""Which results programs asked to be the same: see `flambeau.reproducible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LEVELS = ("run", "threads", "batch")
"""From the weakest to the strongest; each includes those before it."""


class _Reproducibility:
    """The level that holds in this process; None: none was asked for."""

    __slots__ = ("level", "product", "samples", "total")

    def __init__(self) -> None:
        self.level: str | None = None
        self.product: Callable[[Any, Any], Any] | None = None
        """At "batch" what multiplies arrays of NumPy's as `np.matmul` does, each element in one fixed order."""
        self.total: Callable[[Any, tuple[int, ...] | None, bool], Any] | None = None
        """At "batch" what sums up `(array, dims, keepdims)`, each element in one fixed order."""

        self.samples: Any = None
        """At "batch" the module of sums over samples as a tree, `_backends/cpu/linalg/over_samples.py`."""

    def refuse_at_batch(self, name: str, why: str) -> None:
        """Raise for a call whose results depend on the batch by definition, if "batch" was asked for."""
        if self.product is not None:
            raise RuntimeError(f'{name} cannot be kept by reproducible("batch"): {why}')


REPRODUCIBILITY = _Reproducibility()
