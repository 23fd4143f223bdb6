"""Steps that change the order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

from ...sampler import Sampler, SequentialSampler, random_seed
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What a sampler makes of a pipe that has a length."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        sampler: type[Sampler[Any]] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        make: Any = sampler
        self.sampler: Any = make(*self.sampler_args, data_source=datapipe, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """A random sample of those in a buffer, which the next one then replaces: with a buffer for all, any order.

    Without `set_seed` the seed comes from the default generator, so `manual_seed` decides the order.
    """

    def __init__(self, datapipe: IterDataPipe[Any], *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._buffer: list[Any] = []
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = self._buffer
        for sample in self.datapipe:
            if len(buffer) == self.buffer_size:
                place = self._rng.randint(0, len(buffer) - 1)
                drawn, buffer[place] = buffer[place], sample
                yield drawn
            else:
                buffer.append(sample)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def reset(self) -> None:
        """Seed the order of the next iteration."""
        self._buffer = []
        if self._enabled:
            self._rng.seed(random_seed(None) if self._seed is None else self._seed)
            self._seed = None
