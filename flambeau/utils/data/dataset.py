"""Datasets: by index or by iteration, and those made from others."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast

from ..._core.generator import Generator, default_generator
from ..._core.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """A map from indices to samples.

    Subclasses define `__getitem__`, and `__len__` where a sampler needs it. One that can load many samples at once may
    define `__getitems__`, which takes a list of indices and returns a list of samples.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, index):
        ...         return index, index**2
        >>> for numbers, squares in torch.utils.data.DataLoader(Squares(), batch_size=2):
        ...     print(numbers, squares)
        tensor([0, 1]) tensor([0, 1])
        tensor([2, 3]) tensor([4, 9])
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co], ABC):
    """A stream of samples: subclasses define `__iter__`.

    Every worker of a `DataLoader` iterates over a copy of its own; `get_worker_info()` tells it which share is its.

    Example:
        >>> class Countdown(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]  # others are joined by index
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples are the rows of tensors: sample i is a tuple of each tensor's row i.

    Args:
        *tensors: tensors with the same size of the first dimension.

    Raises:
        AssertionError: the tensors have other first sizes.

    Example:
        >>> torch.utils.data.TensorDataset(torch.arange(3), torch.arange(3) ** 2)[2]
        (tensor(2), tensor(4))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            sizes = ", ".join(str(tensor.size(0)) for tensor in tensors)
            raise AssertionError(f"Size mismatch between tensors: the first dimensions are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return cast(int, self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Datasets side by side: sample i is a tuple, or with keyword arguments a dict, of each dataset's sample i.

    Args:
        *args: the datasets, for samples that are tuples.
        **kwargs: the datasets by name, for samples that are dicts.

    Example:
        >>> torch.utils.data.StackDataset(image=[1, 2], label=[3, 4])[1]
        {'image': 2, 'label': 4}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        sizes = [len(dataset) for dataset in self._each()]
        self._length = sizes[0]
        if any(size != self._length for size in sizes):
            raise ValueError(f"Size mismatch between datasets: their lengths are {sizes}")

    def _each(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _joined(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._joined(dataset[index] for dataset in self._each())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_samples(dataset, indices, "StackDataset") for dataset in self._each()]
        return [self._joined(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _samples(dataset: Any, indices: list[Any], owner: str) -> list[Any]:
    """The samples at `indices`, loaded together where the dataset can."""
    together = getattr(dataset, "__getitems__", None)
    if not callable(together):
        return [dataset[index] for index in indices]
    found: list[Any] = together(indices)
    if len(found) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(found)} "
            f"from {type(dataset).__name__}.__getitems__ in a {owner}"
        )
    return found


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.

    Args:
        datasets (Iterable[Dataset]): the datasets.

    Raises:
        AssertionError: there is no dataset, or one has no length.

    Example:
        >>> both = torch.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(both), both[2]
        (3, 3)
    """

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The running totals of the lengths of `sequence`'s items."""
        return list(itertools.accumulate(len(each) for each in sequence))

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset: chain them with ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        size = len(self)
        if idx < -size:
            raise ValueError(
                f"absolute value of index should not exceed dataset length: the index is {idx}, the length {size}"
            )
        if idx >= size:
            raise IndexError(f"list index out of range: {idx} in a ConcatDataset of length {size}")
        position = idx + size if idx < 0 else idx
        which = bisect.bisect_right(self.cumulative_sizes, position)
        return self.datasets[which][position - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        message = "`cummulative_sizes` attribute is renamed to `cumulative_sizes`"
        warnings.warn(message, FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other.

    Args:
        datasets (Iterable[Dataset]): the datasets.

    Example:
        >>> class Stream(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([1, 2])
        >>> list(torch.utils.data.ChainDataset([Stream(), Stream()]))
        [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _each(self) -> Iterator[IterableDataset[Any]]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset, but got {type(dataset).__name__}")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._each():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(cast(Any, dataset)) for dataset in self._each())


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices.

    Args:
        dataset (Dataset): the dataset.
        indices (sequence of ints): the indices.

    Raises:
        IndexError: an index is not one of the dataset's, when that element is read.

    Example:
        >>> list(torch.utils.data.Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        return self.dataset[[self.indices[i] for i in idx] if isinstance(idx, list) else self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _samples(self.dataset, [self.indices[i] for i in indices], "Subset")

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T],
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[T]]:
    """Subsets of random samples that do not overlap.

    `lengths` are numbers of samples, or fractions that sum to 1; what rounding down leaves over goes to the first
    subsets, one sample each.

    Args:
        dataset (Dataset): the dataset.
        lengths (Sequence[int | float]): how many samples each subset has, or what part of all.
        generator (Generator, optional): the source of random numbers.

    Returns:
        list[Subset]: the subsets.

    Example:
        >>> train, test = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), len(test)
        (8, 2)
    """
    from ... import randperm

    size = len(cast(Any, dataset))
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(lengths, size)
    if sum(lengths) != size:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"lengths={list(lengths)} sum to {sum(lengths)}, the dataset has {size} samples"
        )
    indices: list[int] = randperm(size, generator=generator).tolist()
    ends = list(itertools.accumulate(cast(Sequence[int], lengths)))
    return [Subset(dataset, indices[end - int(length) : end]) for end, length in zip(ends, lengths, strict=True)]


def _lengths_of_fractions(fractions: Sequence[float], size: int) -> list[int]:
    for position, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1: it is {fraction}")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for extra in range(size - sum(lengths)):
        lengths[extra % len(lengths)] += 1
    for position, length in enumerate(lengths):
        if length == 0:
            message = f"Length of split at index {position} is 0. This might result in an empty dataset."
            warnings.warn(message, UserWarning, stacklevel=3)
    return lengths
