"""Batches from samples: types, dtypes, containers and errors as PyTorch makes them."""

from __future__ import annotations

import collections
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.differential import differential, outcome

Pair = collections.namedtuple("Pair", ["x", "y"])


class Listed(Sequence[Any]):
    """A sequence of a class of one's own."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]


class NamedList(list[Any]):
    """A list with a class of its own."""


def module_of(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.utils.data._utils.collate")


def shown(batch: Any) -> Any:
    """A batch with the names of its containers' types."""
    if isinstance(batch, dict):
        return type(batch).__name__, {key: shown(value) for key, value in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        return type(batch).__name__, [shown(each) for each in batch]
    return batch


BATCHES: dict[str, Callable[..., Any]] = {
    "ints": lambda T: [1, 2],
    "floats": lambda T: [1.5, 2],
    "int first": lambda T: [1, 2.5],
    "bools": lambda T: [True, False],
    "text": lambda T: ["a", "b"],
    "bytes": lambda T: [b"a", b"b"],
    "lists": lambda T: [[1, 2.0], [3, 4.0]],
    "tuples": lambda T: [(1, "a"), (3, "b")],
    "dicts": lambda T: [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}],
    "named": lambda T: [Pair(1, 2.0), Pair(3, 4.0)],
    "ordered": lambda T: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "defaults": lambda T: [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "own sequence": lambda T: [Listed([1, 2]), Listed([3, 4])],
    "own list": lambda T: [NamedList([1, 2]), NamedList([3, 4])],
    "ranges": lambda T: [range(2), range(2)],
    "range": lambda T: range(3),
    "tensors": lambda T: [T.tensor([1, 2]), T.tensor([3, 4])],
    "numbers as tensors": lambda T: [T.tensor(1), T.tensor(2.5)],
    "with gradient": lambda T: [T.tensor(1.0, requires_grad=True), T.tensor(2.5)],
    "half": lambda T: [T.ones(2, dtype=T.bfloat16), T.zeros(2, dtype=T.bfloat16)],
    "arrays": lambda T: [np.zeros(2, np.int16), np.ones(2, np.int16)],
    "0-d arrays": lambda T: [np.array(1), np.array(2)],
    "scalars": lambda T: [np.float32(1), np.float32(2)],
    "bool scalars": lambda T: [np.bool_(True), np.bool_(False)],
    "nothing": lambda T: [],
    "none": lambda T: [None],
    "complex": lambda T: [1j],
    "object": lambda T: [object()],
    "array of text": lambda T: [np.array("a")],
    "array of objects": lambda T: [np.array([object()])],
    "unequal lists": lambda T: [[1, 2], [3]],
    "unequal tensors": lambda T: [T.ones(2), T.ones(1)],
    "missing key": lambda T: [{"a": 1}, {"b": 2}],
    "large int": lambda T: [2**70],
    "a dict": lambda T: {"a": 1},
}
PHRASES = ("batch must contain tensors", "should be of equal size", "stack expects each tensor", "Overflow", "index")


@pytest.mark.parametrize("name", BATCHES)
@differential
def test_default_collate(T: Any, name: str) -> Any:
    result = outcome(lambda: shown(module_of(T).default_collate(BATCHES[name](T))))
    return result, [phrase for phrase in PHRASES if phrase in getattr(result, "message", "")]


@pytest.mark.parametrize("name", BATCHES)
@differential
def test_default_convert(T: Any, name: str) -> Any:
    value = BATCHES[name](T)
    if name in ("object", "array of text", "array of objects"):
        return module_of(T).default_convert(value[0]) is value[0]
    return shown(module_of(T).default_convert(value))


@differential
def test_convert_scalar_and_nest(T: Any) -> Any:
    convert = module_of(T).default_convert
    nest = {"a": np.zeros(1), "b": [np.ones(1), (np.ones(1), "x")], "c": Pair(np.zeros(1), 2)}
    return convert(np.float32(2)), shown(convert(nest)), convert("abc"), convert(None)


@differential
def test_collate_with_a_map(T: Any) -> Any:
    collate = module_of(T).collate

    def called(name: str) -> Callable[..., Any]:
        return lambda batch, *, collate_fn_map=None: (name, list(batch), len(collate_fn_map))

    return (
        collate([1, 2], collate_fn_map={int: called("ints")}),
        collate([[1], [2]], collate_fn_map={int: called("ints")}),
        collate([True], collate_fn_map={(float, int): called("numbers")}),
        collate([(1, "a")], collate_fn_map={tuple: called("tuples")}),
        collate([1.0], collate_fn_map={object: called("any"), float: called("own type first")}),
        collate([True], collate_fn_map={object: called("in order"), int: called("ints")}),
        outcome(lambda: collate([1]), "batch must contain tensors"),
        outcome(lambda: collate([1], collate_fn_map={str: called("text")}), "batch must contain tensors"),
    )


@differential
def test_the_default_map_can_be_extended(T: Any) -> Any:
    collate, default = module_of(T).collate, module_of(T).default_collate_fn_map
    extended = {**default, type(None): lambda batch, *, collate_fn_map=None: len(batch)}
    names = [function.__name__ for function in default.values()]
    return names, collate([(1, None), (2, None)], collate_fn_map=extended)
