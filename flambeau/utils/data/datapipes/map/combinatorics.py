"""The step that reads by index in a random order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ...sampler import random_seed
from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples at `indices`, or at 0, 1, ..., in a random order: a pipe that is read from the start to the end."""

    def __init__(self, datapipe: MapDataPipe[Any], *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe: Any = datapipe
        self.indices = list(range(len(self.datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled: list[Any] = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        for index in reversed(self._shuffled) if self._enabled else self.indices:  # from the end, as PyTorch does
            yield self.datapipe[index]

    def reset(self) -> None:
        """Draw the order of the next iteration."""
        if self._enabled:
            self._rng.seed(random_seed(None) if self._seed is None else self._seed)
            self._seed = None
            self._shuffled = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
