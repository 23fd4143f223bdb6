"""Which results programs asked to be the same: see `flambeau.reproducible`."""

from __future__ import annotations

LEVELS = ("run", "threads")
"""From the weakest to the strongest; each includes those before it."""


class _Reproducibility:
    """The level that holds in this process; None: none was asked for."""

    __slots__ = ("level",)

    def __init__(self) -> None:
        self.level: str | None = None


REPRODUCIBILITY = _Reproducibility()
