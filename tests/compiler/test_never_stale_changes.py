"""Programs whose calls change Python state: attributes, lists, dictionaries, caches that are handed in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}
IN_PARTS = {
    "a_counter", "a_list_that_grows", "a_number_beside_a_history_that_is_kept",
    "a_list_that_the_call_changes_and_another_that_becomes_it",
}  # fmt: skip
"""Programs whose calls find something else each time, or look at it: they are compiled in parts."""


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(3, 3)
        self.last: Any = None
        self.seen: dict[str, Any] = {}
        self.kept: list[Any] = []

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        self.last = y
        self.seen["sum"] = y.sum()
        self.kept.clear()
        self.kept.append(x * 2)
        return y.relu()


@program
def attributes_that_are_set_anew(compile: Compile) -> Iterator[Any]:
    layer = Layer()
    f = compile(layer)
    for turn in range(7):
        found = f(X + turn)
        yield [found, layer.last, layer.seen, layer.kept]
        yield layer.last is found
        (found.sum() + layer.seen["sum"]).backward()
        yield layer.inner.weight.grad
    layer.last = 3
    yield f(X)
    yield layer.last
    layer.seen["more"] = 1
    yield f(X)
    yield [*layer.seen]
    yield vars(layer).keys() == vars(Layer()).keys()


@program
def a_list_that_is_an_argument_and_global_state(compile: Compile) -> Iterator[Any]:
    shared = [1.0]

    def f(x: Any, given: list[float]) -> Any:
        given.append(2.0)
        y = x * len(shared)
        given.pop()
        return y + len(given)

    f = compile(f)
    for given in (shared, [1.0], shared, [1.0]):
        for _ in range(6):
            yield f(X, given)


@program
def a_list_that_is_told_from_another_by_its_identity(compile: Compile) -> Iterator[Any]:
    shared = {"a": 1.0}
    f = compile(lambda x, given: x * 2 if given is shared else x * 3)
    for given in (shared, {"a": 1.0}, shared, {"a": 1.0}):
        for _ in range(6):
            yield f(X, given)


class Pair:
    def __init__(self) -> None:
        self.first: list[Any] = [1.0]
        self.second: list[Any] = [1.0]


@program
def two_attributes_that_become_one_list(compile: Compile) -> Iterator[Any]:
    pair = Pair()

    def f(x: Any) -> Any:
        pair.first[0] = 2.0
        y = x * pair.second[0]
        pair.first[0] = 1.0
        return y

    f = compile(f)
    for _ in range(6):
        yield f(X)
    pair.second = pair.first
    for _ in range(6):
        yield f(X)
    pair.second = [1.0]
    for _ in range(6):
        yield f(X)


@program
def a_list_that_the_call_changes_and_another_that_becomes_it(compile: Compile) -> Iterator[Any]:
    pair = Pair()

    def f(x: Any) -> Any:
        pair.first[0] = x.sum()
        return x * pair.second[0]

    f = compile(f)
    for turn in range(6):
        pair.first[0] = 1.0
        yield f(X + turn)
    pair.second = pair.first
    for turn in range(6):
        pair.first[0] = 1.0
        yield f(X + turn)


@program
def a_list_under_two_names_that_part(compile: Compile) -> Iterator[Any]:
    pair = Pair()
    pair.second = pair.first

    def f(x: Any) -> Any:
        pair.first.append(x)
        y = x * len(pair.second)
        pair.first.pop()
        return y

    f = compile(f)
    for _ in range(6):
        yield f(X)
    pair.second = [1.0]
    for _ in range(6):
        yield f(X)


@program
def numbers_beside_tensors_that_are_kept(compile: Compile) -> Iterator[Any]:
    layer = Layer()

    def f(x: Any) -> float:
        y = layer.inner(x)
        layer.last = y.detach()
        return float(y.sum())

    f = compile(f)
    for turn in range(7):
        yield f(X + turn)
        yield layer.last


@program
def a_number_beside_a_history_that_is_kept(compile: Compile) -> Iterator[Any]:
    layer = Layer()

    def f(x: Any) -> float:
        layer.last = layer.inner(x)
        total = layer.last.sum()
        return float(total)

    f = compile(f)
    for turn in range(14):
        yield f(X + turn)
        layer.last.sum().backward()
        yield layer.inner.weight.grad


@program
def a_counter(compile: Compile) -> Iterator[Any]:
    layer = Layer()

    def f(x: Any) -> Any:
        y = x * 2
        layer.count = getattr(layer, "count", 0) + 1
        return y + 1

    f = compile(f)
    for _ in range(14):
        yield f(X)
        yield layer.count


@program
def a_list_that_grows(compile: Compile) -> Iterator[Any]:
    found: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        found.append(y)
        return y + 1

    f = compile(f)
    for turn in range(14):
        yield f(X + turn)
        yield found


class Slot:
    def __init__(self) -> None:
        self.keys: Any = None
        self.length = 0

    def update(self, x: Any) -> Any:
        self.keys = x if self.keys is None else torch.cat([self.keys, x])
        self.length += x.size(0)
        return self.keys


class Cache:
    """A cache with a part for each layer, which the first call makes."""

    def __init__(self) -> None:
        self.layers: list[Slot] = []

    def update(self, x: Any, layer: int) -> Any:
        while len(self.layers) <= layer:
            self.layers.append(Slot())
        return self.layers[layer].update(x)


@dataclass
class Output(OrderedDict[str, Any]):
    hidden: Any = None
    cache: Any = None

    def __post_init__(self) -> None:
        self["hidden"] = self.hidden


def decode(x: Any, cache: Cache) -> Output:
    for layer in range(2):
        x = x + cache.update(x * 2, layer).sum(0)
    return Output(x, cache)


@program
def caches_that_are_handed_in(compile: Compile) -> Iterator[Any]:
    f = compile(decode)
    for turn in range(6):
        cache = Cache()
        for step in range(4):
            found = f(X[:1] + turn + step, cache)
            yield found.hidden
            yield found.cache is cache
            yield [[each.keys, each.length] for each in cache.layers]


@program
def objects_in_arguments(compile: Compile) -> Iterator[Any]:
    f = compile(lambda given, more: given.hidden * more["by"] + given["hidden"])
    for by in (2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 2.0):
        yield f(Output(X + 1), {"by": by})
    other = Output(X)
    other["hidden"] = X * 5
    yield f(other, {"by": 2.0})
    other.cache = 1
    yield f(other, {"by": 2.0})


@program
def one_object_twice(compile: Compile) -> Iterator[Any]:
    def f(one: Slot, other: Slot) -> Any:
        one.update(X)
        return other.update(X) if one is not other else other.keys * 2

    f = compile(f)
    for _ in range(5):
        yield f(Slot(), Slot())
    for _ in range(5):
        same = Slot()
        yield f(same, same)
        yield same.length


class Mode:
    def __init__(self) -> None:
        self.by = 2.0


DEFAULT, LISTED, FACTORS = Mode(), [Mode(), Mode()], {Mode(): 3.0, Mode(): 5.0}


@program
def objects_that_are_asked_for_by_identity(compile: Compile) -> Iterator[Any]:
    def f(x: Any, mode: Mode) -> Any:
        x = x * FACTORS.get(mode, mode.by)
        return x - 1 if mode is DEFAULT else x + 1 if mode in LISTED else x

    for first in (Mode(), *LISTED, *FACTORS, DEFAULT):
        g = compile(f)
        for _ in range(5):
            yield g(X, first)
        for mode in (Mode(), DEFAULT, *LISTED, *FACTORS, Mode()):
            yield g(X, mode)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_changes_what_plain_does(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    assert any(each.programs for each in made) is (name not in IN_PARTS), [each.reasons for each in made]
    assert any(each.all_programs for each in made)
