"""Which results programs asked to be the same: see `flambeau.reproducible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LEVELS = ("run", "threads", "batch", "machine")
"""From the weakest to the strongest; each includes those before it."""


class _Reproducibility:
    """The level that holds in this process; None: none was asked for."""

    __slots__ = ("function", "level", "machine", "product", "samples", "total")

    def __init__(self) -> None:
        self.level: str | None = None
        self.machine = False
        """Whether results must not depend on the processor and on which kernels there are: the level is "machine"."""
        self.function: Callable[..., Any] | None = None
        """At "machine" what computes a function of real numbers, by NumPy's name for it: `(name, *arrays)`."""
        self.product: Callable[[Any, Any], Any] | None = None
        """From "batch" on what multiplies arrays of NumPy's as `np.matmul` does, each element in one fixed order."""
        self.total: Callable[[Any, tuple[int, ...] | None, bool], Any] | None = None
        """From "batch" on what sums up `(array, dims, keepdims)`, each element in one fixed order."""

        self.samples: Any = None
        """From "batch" on the module of sums over samples as a tree, `_backends/cpu/linalg/over_samples.py`."""

    def refuse_at_batch(self, name: str, why: str) -> None:
        """Raise for a call whose results depend on the batch by definition, if "batch" was asked for."""
        if self.product is not None:
            raise RuntimeError(f'{name} cannot be kept by reproducible("{self.level}"): {why}')

    def refuse_at_machine(self, name: str, why: str) -> None:
        """Raise for a call that runs in other ways on other processors, if "machine" was asked for."""
        if self.machine:
            raise RuntimeError(
                f'{name} cannot be kept by reproducible("machine"): {why}. Use reproducible("batch"), or call '
                "flambeau.reproducible(None) before"
            )


REPRODUCIBILITY = _Reproducibility()
