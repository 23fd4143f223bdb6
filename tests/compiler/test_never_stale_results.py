"""Programs whose calls return more than tensors: records, dictionaries with fields, objects that share parts."""

from __future__ import annotations

import enum
import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}
NOT_COMPILED = {"an_object_that_is_kept", "a_function_of_its_own"}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


class Output(OrderedDict[str, Any]):
    """A dictionary whose items are also attributes, filled in from the fields of a dataclass."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if getattr(self, each.name) is not None:
                self[each.name] = getattr(self, each.name)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)


@dataclass
class Scores(Output):
    loss: Any = None
    logits: Any = None
    states: Any = None


@dataclass(frozen=True, slots=True)
class Point:
    x: Any
    name: str = "p"


class Pair(NamedTuple):
    first: Any
    second: Any


class Kind(enum.Enum):
    LOW = 1
    HIGH = 2


class Cache:
    def __init__(self) -> None:
        self.layers: list[Any] = []
        self.owner = self

    def update(self, x: Any) -> Any:
        self.layers.append(x)
        return x


class Listed(list[Any]):
    note = "class"


LAYER = nn.Linear(3, 3)


def shown(value: Scores) -> Any:
    return type(value), dict(value), vars(value), value.loss, [*value]


@program
def an_output_with_fields(compile: Compile) -> Iterator[Any]:
    layer = nn.Linear(3, 3)
    f = compile(lambda x: Scores(loss=layer(x).sum(), logits=layer(x), states=(x * 2, x + 1)))
    for _ in range(6):
        found = f(X)
        yield shown(found)
        found.loss.backward()
        yield layer.weight.grad
        yield found.states[0] is found["states"][0]
    yield f(X) is f(X)
    found = f(X)
    found["more"] = X
    yield shown(found)
    yield shown(f(X))


@program
def an_output_of_a_method_that_changes(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: Scores(loss=x.sum()))
    for _ in range(5):
        yield shown(f(X))
    before = Output.__post_init__
    try:
        Output.__post_init__ = lambda self: None  # type: ignore[method-assign]
        yield shown(f(X))
    finally:
        Output.__post_init__ = before  # type: ignore[method-assign]
    yield shown(f(X))


@program
def records(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: [Point(x * 2), Pair(x + 1, Kind.HIGH), torch.max(x, 1), x.shape, x.dtype, None, 1.5, b"b"])
    for _ in range(5):
        point, *rest = f(X)
        yield point.x
        yield point.name
        yield rest
        with pytest.raises(AttributeError):
            point.x = 1


@program
def containers_of_other_classes(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        table = defaultdict(list, {"a": [x + 1]})
        listed = Listed([x * 2])
        listed.note = "own"  # type: ignore[misc]
        return OrderedDict(b=x, a=x * 3), table, deque([x - 1], maxlen=2), {1, 2}, listed

    f = compile(f)
    for _ in range(5):
        ordered, table, queue, numbers, listed = f(X)
        ordered.move_to_end("b")
        yield [*ordered]
        yield ordered["b"] is X
        yield table["new"]
        yield table
        queue.append(1), queue.append(2)
        yield [*queue]
        yield numbers
        yield type(listed), [*listed], listed.note


@program
def objects_that_hold_each_other(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        cache = Cache()
        cache.update(x + 1)
        cache.update(LAYER(x))
        return cache, cache.layers, {"cache": cache}

    f = compile(f)
    for _ in range(5):
        cache, layers, table = f(X)
        yield cache.owner is cache is table["cache"]
        yield layers is cache.layers
        yield layers
        layers.append(1)


@program
def what_was_there_before_stays_itself(compile: Compile) -> Iterator[Any]:
    cache, numbers = Cache(), [1, 2]
    f = compile(lambda x, given: (x + 1, given, cache, numbers, {"n": numbers}, Kind, Cache))
    given = [X]
    for _ in range(5):
        _, same, held, listed, table, kind, made = f(X, given)
        yield same is given
        yield held is cache
        yield listed is numbers is table["n"]
        yield kind is Kind
        yield made is Cache
    other = [X]
    yield f(X, other)[1] is other


@functools.lru_cache
def kept() -> Cache:
    return Cache()


@program
def an_object_that_is_kept(compile: Compile) -> Iterator[Any]:
    """Nothing that the call reads leads to it: a new one would be another."""
    f = compile(lambda x: (x + 1, kept()))
    for _ in range(6):
        yield f(X)[1] is kept()


@program
def a_function_of_its_own(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: (x + 1, lambda: x))
    for _ in range(6):
        yield f(X)[1]() is X


@program
def numbers_that_follow_from_sizes(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: Scores(loss=x.sum(), logits=x.shape, states=[x.size(0) * 2, x.numel()]))
    for size in (2, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 6, 2):
        yield shown(f(torch.ones(size, 3)))


@program
def a_tensor_and_its_views(compile: Compile) -> Iterator[Any]:
    weight = torch.linspace(-1, 1, 6).reshape(2, 3).clone().requires_grad_()

    def scores(x: Any) -> Any:
        y = (x * weight).relu() + x
        return y.t(), {"rows": y, "last": y[-1]}

    f = compile(scores)
    for change in (None, None, None, None, "view", "base", "last"):
        weight.grad = None
        turned, held = f(X[:2, :3].clone())
        rows, last = held["rows"], held["last"]
        if change is not None:
            {"view": turned, "base": rows, "last": last}[change].mul_(3.0)
        (rows.sum() * 2 + turned.square().sum() + last.exp().sum()).backward()
        yield weight.grad
        yield turned
        yield last
        yield turned._base is rows, last._base is rows, turned._version, rows._version


@program
def results_without_a_gradient(compile: Compile) -> Iterator[Any]:
    """What only the other results depend on keeps `grad` None, and optimizers leave it alone."""
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    with torch.no_grad():
        for each in (*one.parameters(), *other.parameters()):
            each.copy_(torch.linspace(-1, 1, each.numel()).reshape(each.shape))
    f = compile(lambda x: (one(x), other(x).relu(), one(x) + other(x)))
    for turn in range(9):
        one.zero_grad()
        other.zero_grad()
        f(X)[turn % 3].sum().backward()
        for each in (*one.parameters(), *other.parameters()):
            yield each.grad is None
            yield each.grad


@program
def a_leaf_of_the_call(compile: Compile) -> Iterator[Any]:
    """Nobody sees the gradient of a leaf that a call makes and keeps to itself."""
    weight = torch.linspace(-1, 1, 6).reshape(2, 3).clone().requires_grad_()

    def features(x: Any) -> Any:
        hidden = x[None]
        hidden.requires_grad = True
        return hidden * 3, (hidden * weight).relu().sum()

    f = compile(features)
    for turn in range(9):
        weight.grad = None
        f(X + turn)[turn % 2].sum().backward()
        yield weight.grad is None
        yield weight.grad


@program
def views_without_a_history(compile: Compile) -> Iterator[Any]:
    def halves(x: Any) -> Any:
        y = x * 2
        return y[:1], y, y.view(-1)

    f = compile(halves)
    for _ in range(6):
        first, whole, flat = f(X)
        flat.mul_(2.0)
        yield first
        yield whole
        yield first._base is whole, flat._base is whole, first._version, whole._version


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compiled_returns_what_plain_does(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    assert any(each.programs for each in made) is (name not in NOT_COMPILED), [each.reasons for each in made]
