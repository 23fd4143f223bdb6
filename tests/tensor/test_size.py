"""torch.Size: a tuple of integers with a few manners of its own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tests.support.differential import differential, outcome

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 4), (1, 2, 3, 4)]


def same_kind(T: Any, value: Any) -> tuple[Any, bool]:
    """The value, and whether it is a Size and not only a tuple."""
    return value, type(value) is T.Size


@differential
@pytest.mark.parametrize("shape", SHAPES)
def test_text_and_tuple_behaviour(T: Any, shape: tuple[int, ...]) -> Any:
    size = T.Size(shape)
    return (
        repr(size),
        str(size),
        f"{size}",
        len(size),
        size.numel(),
        tuple(size),
        list(reversed(size)),
        size == shape,
        shape == size,
        size == list(shape),
        hash(size) == hash(shape),
        isinstance(size, tuple),
        size.count(3),
        3 in size,
        sorted(size),
        bool(size),
    )


@differential
def test_where_sizes_come_from(T: Any) -> Any:
    tensor = T.zeros(2, 3)
    return [
        same_kind(T, value)
        for value in (tensor.shape, tensor.size(), T.zeros(()).shape, T.broadcast_shapes((2, 1), (3,)))
    ]


@differential
def test_size_of_a_dimension_is_an_int(T: Any) -> Any:
    tensor = T.zeros(2, 3)
    return (
        tensor.size(0),
        tensor.size(-1),
        tensor.size(dim=1),
        type(tensor.size(0)),
        type(tensor.shape[0]),
        outcome(lambda: tensor.size(2), "Dimension out of range"),
        outcome(lambda: tensor.size(-3), "Dimension out of range"),
    )


@differential
def test_indexing_and_slicing(T: Any) -> Any:
    size = T.Size((2, 3, 4, 5))
    return (
        size[0],
        size[-1],
        same_kind(T, size[1:]),
        same_kind(T, size[:-2]),
        same_kind(T, size[::2]),
        same_kind(T, size[::-1]),
        same_kind(T, size[5:]),
        outcome(lambda: size[4], "out of range"),
        outcome(lambda: size["0"]),
    )


@differential
def test_joining_and_repeating(T: Any) -> Any:
    size = T.Size((2, 3))
    return (
        same_kind(T, size + (4,)),
        same_kind(T, size + T.Size((4,))),
        same_kind(T, size * 2),
        same_kind(T, 2 * size),
        same_kind(T, (1,) + size),
        outcome(lambda: size + [4]),
        outcome(lambda: size + 4),
    )


@differential
def test_ordering(T: Any) -> Any:
    small, large = T.Size((2, 3)), T.Size((2, 4))
    return small < large, small <= (2, 3), max(small, large), small != large


@differential
def test_construction(T: Any) -> Any:
    return (
        T.Size(),
        T.Size([1, 2]),
        T.Size(T.Size((1, 2))),
        T.Size(range(3)),
        T.Size((True, 2)),
        T.Size([T.tensor(3), 4]),
        outcome(lambda: T.Size(3)),
        outcome(lambda: T.Size((1, 2.5))),
        outcome(lambda: T.Size(("a",))),
        outcome(lambda: T.Size((1, 2), (3,))),
    )


@differential
def test_numel_of_large_sizes(T: Any) -> Any:
    return T.Size((10**4, 10**5)).numel(), T.Size((10**9, 0)).numel()


@differential
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(T: Any, shape: tuple[int, ...], protocol: int) -> Any:
    return same_kind(T, pickle.loads(pickle.dumps(T.Size(shape), protocol)))


@differential
def test_copying(T: Any) -> Any:
    size = T.Size((2, 3))
    return same_kind(T, copy.copy(size)), same_kind(T, copy.deepcopy(size))


@differential
def test_as_an_argument(T: Any) -> Any:
    size = T.Size((2, 3))
    return (
        T.zeros(size),
        T.arange(6).view(size),
        T.arange(6).reshape(T.Size((3, 2))),
        T.ones(3).expand(size),
        T.zeros(size[0], size[1]),
        T.ones(4, *size[:1]),
        {size: "key"}[T.Size((2, 3))],
        {size: "key"}.get((2, 3)),
    )


@differential
def test_unpacking(T: Any) -> Any:
    rows, columns = T.zeros(2, 3).shape
    first, *rest = T.zeros(4, 5, 6).shape
    return rows, columns, first, rest, type(rest)


@differential
def test_attributes_of_shape(T: Any) -> Any:
    tensor = T.zeros(2, 3, 4)
    return (
        tensor.ndim,
        tensor.dim(),
        tensor.ndimension(),
        tensor.numel(),
        tensor.nelement(),
        T.numel(tensor),
        len(tensor),
    )


@differential
def test_sizes_are_immutable(T: Any) -> Any:
    size = T.Size((2, 3))

    def assign() -> None:
        size[0] = 5

    return outcome(assign, "does not support item assignment")
