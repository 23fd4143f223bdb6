"""Samplers: in which order the indices of a dataset are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import flambeau as torch

from ..._core.generator import Generator, default_generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)
_BLOCK = 32
"""How many indices `RandomSampler` draws at once with replacement; part of which numbers a seed gives."""


def random_seed(generator: Generator | None) -> int:
    """A seed drawn from `generator`, or from the default one."""
    seed: int = torch.empty((), dtype=torch.int64).random_(generator=generator or default_generator).item()
    return seed


def _is_positive_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[T_co]):
    """An iterable of indices, or of lists of indices. Subclasses define `__iter__`, and `__len__` where it is known.

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return iter(range(len(self.source) - 1, -1, -1))
        >>> list(torch.utils.data.DataLoader([1, 2, 3], sampler=Backwards([1, 2, 3])))
        [tensor([3]), tensor([2]), tensor([1])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} should implement __iter__")


class SequentialSampler(Sampler[int]):
    """All indices in order.

    Args:
        data_source (Sized): the dataset, or anything that has a length.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: permutations, or with `replacement` independent draws.

    `num_samples` is the length of one pass, by default that of the data.

    Args:
        data_source (Sized): the dataset, or anything that has a length.
        replacement (bool): whether an index may be drawn several times. Default: `False`.
        num_samples (int, optional): how many indices to draw; None means as many as there are samples.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Raises:
        ValueError: `num_samples` is not a positive integer.

    Example:
        >>> sorted(torch.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not _is_positive_int(self.num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices one pass has; follows the data's length if it was not given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(random_seed(None))
        if self.replacement:
            yield from _draws(size, self.num_samples, generator)
            return
        for _ in range(self.num_samples // size):
            yield from torch.randperm(size, generator=generator).tolist()
        # Drawn even if nothing is taken from it: a generator that goes on being used must stand where PyTorch's does.
        yield from torch.randperm(size, generator=generator).tolist()[: self.num_samples % size]

    def __len__(self) -> int:
        return self.num_samples


def _draws(size: int, count: int, generator: Generator) -> Iterator[int]:
    for start in range(0, count, _BLOCK):
        block = min(_BLOCK, count - start)
        yield from torch.randint(size, (block,), dtype=torch.int64, generator=generator).tolist()


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Args:
        indices (sequence of ints): the indices.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([3, 5]))
        [3, 5]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws of the indices of `weights`, with probabilities proportional to them.

    Args:
        weights (sequence of floats): a weight for each index.
        num_samples (int): how many indices to draw.
        replacement (bool): whether an index may be drawn several times. Default: `True`.
        generator (Generator, optional): the source of random numbers; None means the default one.

    Raises:
        ValueError: `num_samples` is not a positive integer, or the weights are no vector.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
        [1, 1, 1]
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        tensor = torch.as_tensor(weights, dtype=torch.float64)
        if tensor.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(tensor.shape)}")
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; `drop_last` leaves out a last list that is shorter.

    Args:
        sampler (Sampler or iterable of ints): the sampler whose indices are taken.
        batch_size (int): how many indices a list has.
        drop_last (bool): whether samples that do not fill a batch, or a share for all processes, are left out.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_positive_int(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]  # a TypeError if it has none
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)
