"""Datasets and `random_split`: the same samples, lengths, warnings and errors as PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, warned


def data_of(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.utils.data")


def stream_of(T: Any, length: int, known: bool = True) -> Any:
    D = data_of(T)

    class Stream(D.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(range(length))

    class SizedStream(Stream):
        def __len__(self) -> int:
            return length

    return SizedStream() if known else Stream()


@differential
def test_samples(T: Any) -> Any:
    D = data_of(T)
    rows, targets = T.arange(6.0).reshape(3, 2), T.arange(3)
    table = D.TensorDataset(rows, targets)
    joined = D.ConcatDataset([range(2), range(10, 13)])
    subset = D.Subset(joined, [3, 1])
    pairs, named = D.StackDataset(range(3), table), D.StackDataset(a=range(3), b=range(3, 6))
    chain = stream_of(T, 2) + stream_of(T, 3)
    return (
        [len(each) for each in (table, joined, subset, pairs, named, chain)],
        [table[1], table[[0, 2]], table[-1], table[1:]],
        [joined[index] for index in range(-5, 5)],
        joined.cumulative_sizes,
        [subset[0], subset.__getitems__([0, 1])],
        [pairs[1], named[2], pairs.__getitems__([0, 2]), named.__getitems__([1])],
        list(chain),
        type(chain).__name__,
        type(table + table).__name__,
        len(table + table),
        str(D.Dataset[int]).rsplit(".", maxsplit=1)[-1],
        warned(lambda: joined.cummulative_sizes, "is renamed to"),
    )


ERRORS: dict[str, tuple[Callable[..., Any], str]] = {
    "no getitem": (lambda T, D: D.Dataset()[0], "should implement __getitem__"),
    "no len": (lambda T, D: len(D.Dataset()), "has no len()"),
    "no iter": (lambda T, D: D.IterableDataset(), "abstract"),
    "tensor sizes": (lambda T, D: D.TensorDataset(T.zeros(2), T.zeros(3)), "Size mismatch between tensors"),
    "no datasets": (lambda T, D: D.ConcatDataset([]), "should not be an empty iterable"),
    "concat of stream": (lambda T, D: D.ConcatDataset([stream_of(T, 1)]), "does not support IterableDataset"),
    "beyond": (lambda T, D: D.ConcatDataset([range(2)])[2], "out of range"),
    "below": (lambda T, D: D.ConcatDataset([range(2)])[-3], "should not exceed dataset length"),
    "chain of maps": (lambda T, D: list(D.ChainDataset([range(2)])), "only supports IterableDataset"),
    "length of chain": (lambda T, D: len(D.ChainDataset([stream_of(T, 2, known=False)])), "has no len()"),
    "empty stack": (lambda T, D: D.StackDataset(), "At least one dataset"),
    "stack sizes": (lambda T, D: D.StackDataset(range(2), range(3)), "Size mismatch between datasets"),
    "mixed stack": (lambda T, D: D.StackDataset(range(2), a=range(2)), "both types are given"),
    "split sum": (lambda T, D: D.random_split(range(4), [3, 2]), "Sum of input lengths"),
    "split fractions": (lambda T, D: D.random_split(range(4), [0.4, 0.4]), "Sum of input lengths"),
    "split fraction": (lambda T, D: D.random_split(range(4), [1.5, -0.5]), "is not between 0 and 1"),
}


@pytest.mark.parametrize("case", ERRORS)
@differential
def test_errors(T: Any, case: str) -> Any:
    action, phrase = ERRORS[case]
    return outcome(lambda: action(T, data_of(T)), phrase)


@pytest.mark.parametrize("lengths", [[3, 7], [0.3, 0.7], [0.33, 0.33, 0.34], [1.0], [0.25, 0.25, 0.25, 0.25], [10]])
@pytest.mark.parametrize("seed", [None, 7])
@differential
def test_random_split(T: Any, lengths: list[Any], seed: int | None) -> Any:
    D = data_of(T)
    options = {} if seed is None else {"generator": T.Generator().manual_seed(seed)}
    return [each.indices for each in D.random_split(range(10), lengths, **options)], T.rand(1)


@differential
def test_random_split_warns_of_empty_parts(T: Any) -> Any:
    D = data_of(T)
    split = warned(lambda: D.random_split(range(2), [0.3, 0.3, 0.4]), "This might result in an empty dataset")
    return [len(each) for each in split[0]], split[1:]


def test_nested_batches_must_have_the_right_size() -> None:
    class Short(flambeau.utils.data.Dataset[int]):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return indices[1:]

        def __len__(self) -> int:
            return 3

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        flambeau.utils.data.Subset(Short(), [0, 1]).__getitems__([0, 1])
