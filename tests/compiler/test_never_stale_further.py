"""Further programs for compiled functions: the ways in which Python is written, and what layers and training do."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import functools
import os
import time
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

F = nn.functional
PROGRAMS: dict[str, Program] = {}
LEFT_ALONE = {"complex_numbers"}
"""Programs of which nothing is compiled: what they do cannot be repeated, or is not known."""


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def left_alone(function: Program) -> Program:
    LEFT_ALONE.add(function.__name__)
    return program(function)


def calls(name: str, function: Callable[..., Any], *inputs: Any) -> None:
    """A program that calls one function with each of some inputs, the first ones several times."""

    def run(compile: Compile) -> Iterator[Any]:
        g = compile(function)
        for each in (inputs[0],) * 4 + inputs + inputs[:1]:
            yield g(*each)

    PROGRAMS[name] = run


NAN, INF = float("nan"), float("inf")
Point = namedtuple("Point", ["x", "y"])


class Color(enum.Enum):
    RED = 1
    BLUE = 2


# ----- one function, several inputs ---------------------------------------------------------------------------------

calls("floats", lambda x, n: x * n, (X, 1.5), (X, INF), (X, -INF), (X, 0.0), (X, -0.0), (X, 1e-300))
calls("integers_and_truth", lambda x, n: x + n, (X, 1), (X, 1.0), (X, True), (X, 2**40), (X, 0), (X, False))
calls("texts", lambda x, how: F.interpolate(x[None], 4, mode=how), (X, "nearest"), (X, "linear"), (X, "area"))
calls("dims", lambda x, dim: x.sum(dim), (X, 0), (X, 1), (X, (0, 1)), (X, -1), (X, None))
calls("slices", lambda x, where: x[where] * 2, (X, slice(1)), (X, slice(1, None)), (X, 0), (X, (0, 1)), (X, Ellipsis))
calls("dtypes", lambda x, kind: x.to(kind) + 1, (X, torch.float64), (X, torch.int64), (X, torch.bfloat16))
calls("nothing_or_a_tensor", lambda x, y=None: x if y is None else x + y, (X, X), (X,), (X, None), (X, X[0]))
calls("many_arguments", lambda *xs, scale=1: sum(xs) * scale, (X, X), (X,), (X, X, X), (X, X + 1))
calls("nested_containers", lambda tree: tree[0]["a"][1] + tree[1], (({"a": (X, X)}, X),), (({"a": (X, X + 1)}, X),))
calls("namedtuples", lambda p: p.x * p.y, (Point(X, 2),), (Point(X, 3),), (Point(X, X),))
calls("enumerations", lambda x, c: x if c is Color.RED else -x, (X, Color.RED), (X, Color.BLUE))
calls("booleans", lambda m: (m & ~m) | m, (X > 2,), (X > 3,), (X < 0,))
calls("complex_numbers", lambda z: (z * z.conj()).real + z.abs(), (torch.complex(X, X),), (torch.complex(X, -X),))
calls("half_precision", lambda x: (x * 1.1).softmax(-1), (X.half(),), (X.bfloat16(),), (X,))
calls(
    "many_elements",
    lambda x: (x.exp() - 1).relu().sum(),
    (torch.linspace(-1, 1, 9000),),
    (torch.linspace(-2, 1, 9000),),
)
calls("no_elements", lambda x: x.sum(0) + 1, (torch.zeros(0, 3),), (torch.zeros(2, 3),), (torch.zeros(0, 0),))
calls("no_dimensions", lambda x: x * 2 + x.exp(), (torch.tensor(1.0),), (torch.tensor(2.0),), (X,))
calls("not_numbers", lambda x: x.nan_to_num(1.0) + x.isnan(), (X / 0 * 0,), (X,), (X * NAN,))
calls("same_tensor_twice", lambda x, y: x.t() @ y, (X, X), (X, X + 1))
calls("lists_of_tensors", lambda xs: torch.cat(xs) * 2, ([X, X + 1],), ([X],), ([X + 1, X, X],))
calls(
    "channels_last",
    lambda x: F.relu(x) * 2,
    (torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last),),
    (torch.ones(1, 2, 3, 3),),
)
calls("windows", lambda x: x.unfold(1, 2, 1).sum(-1), (X,), (X + 1,), (torch.arange(8.0).reshape(2, 4),))
calls("in_place_on_own", lambda x: x.clone().add_(1).mul_(2).relu_(), (X,), (X - 3,))
calls("subscripts_assigned", lambda x: torch.zeros(2, 3).index_put((torch.tensor([0]),), x[1:]), (X,), (X + 1,))
calls("out_arguments", lambda x: torch.add(x, 1, out=torch.empty(2, 3)), (X,), (X + 1,))
calls("several_results", lambda x: x.max(1), (X,), (-X,))
calls("sorted_and_chosen", lambda x: x.sort(descending=True)[0].topk(2)[0], (X,), (-X,))
calls("einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), (X, X), (X, X + 1), (X[:1], X))
calls("where_and_masks", lambda x: torch.where(x > 2, x, -x).masked_fill(x == 0, 9), (X,), (-X,))
calls("a_function_of_the_library", torch.relu, (X,), (-X,))


# ----- how Python is written ----------------------------------------------------------------------------------------


class Table(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


class Ordered(OrderedDict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key)


@program
def items_of_subclasses(compile: Compile) -> Iterator[Any]:
    table, row, ordered = Table(by=2.0), Row([3.0]), Ordered(a=1.0, b=2.0)
    f = compile(lambda x: x * table["by"] + row[0] - next(iter(ordered.values())) + ordered["b"])
    for _ in range(5):
        yield f(X)
    table["by"] = 5.0
    yield f(X)
    row[0] = 7.0
    yield f(X)
    ordered.move_to_end("a")
    yield f(X)
    ordered["b"] = 9.0
    yield f(X)


class Holder:
    def __init__(self) -> None:
        self.scale0, self.shift0, self.last = 2.0, 1.0, 3.0


@program
def names_that_are_made(compile: Compile) -> Iterator[Any]:
    holder = Holder()

    def f(x: Any, name: str) -> Any:
        return x * getattr(holder, f"scale{x.size(0) - 2}") + getattr(holder, name) - holder.__dict__["la" + "st"]

    f = compile(f)
    for _ in range(5):
        yield f(X, "shift0")
    for name in ("scale0", "shift0", "last"):
        setattr(holder, name, 8.0)
        yield f(X, "shift0")


@program
def decorators(compile: Compile) -> Iterator[Any]:
    factor = [2.0]

    def scaled(function: Any) -> Any:
        @functools.wraps(function)
        def inner(x: Any) -> Any:
            return function(x) * factor[0]

        return inner

    g = compile(scaled(lambda x: x + 1))
    for factor[0] in (2.0, 2.0, 2.0, 2.0, 3.0, 2.0):
        yield g(X)


@program
def partial_functions(compile: Compile) -> Iterator[Any]:
    bound = functools.partial(lambda x, n: x * n, n=2.0)
    g = compile(lambda x: bound(x))
    for _ in range(4):
        yield g(X)
    bound.keywords["n"] = 5.0
    yield g(X)


@program
def callable_objects(compile: Compile) -> Iterator[Any]:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return x * self.factor

        def __len__(self) -> int:
            return int(self.factor)

    scale = Scale(2.0)
    g, h = compile(scale), compile(lambda x: scale(x) + len(scale))
    for factor in (2.0, 2.0, 2.0, 2.0, 3.0, 2.0):
        scale.factor = factor
        yield g(X), h(X)


@program
def operators_of_objects(compile: Compile) -> Iterator[Any]:
    class Money:
        worth = 2.0

        def __rmul__(self, x: Any) -> Any:
            return x.mul(self.worth)

        def __getitem__(self, index: int) -> float:
            return self.worth + index

    money = Money()
    g = compile(lambda x: money.__rmul__(x) + money[1])
    for worth in (2.0, 2.0, 2.0, 2.0, 5.0):
        Money.worth = worth
        yield g(X)


@program
def methods_of_classes(compile: Compile) -> Iterator[Any]:
    class Maths:
        base = 2.0

        @staticmethod
        def double(x: Any) -> Any:
            return x * 2

        @classmethod
        def scaled(cls, x: Any) -> Any:
            return x * cls.base

    g = compile(lambda x: Maths.double(x) + Maths.scaled(x))
    for base in (2.0, 2.0, 2.0, 2.0, 3.0):
        Maths.base = base
        yield g(X)
    Maths.double = staticmethod(lambda x: x)  # type: ignore[method-assign, assignment]
    yield g(X)


@program
def missing_attributes(compile: Compile) -> Iterator[Any]:
    class Options:
        def __getattr__(self, name: str) -> float:
            return 3.0

    options = Options()
    g = compile(lambda x: x * options.scale + getattr(options, "shift", 0))
    for _ in range(4):
        yield g(X)
    options.scale = 5.0
    yield g(X)
    del options.scale
    yield g(X)


@program
def attributes_that_may_be_there(compile: Compile) -> Iterator[Any]:
    class Options:
        pass

    options: Any = Options()
    g = compile(lambda x: x * 2 if hasattr(options, "double") else x)
    for _ in range(4):
        yield g(X)
    options.double = True
    yield g(X)
    del options.double
    Options.double = True  # type: ignore[attr-defined]
    yield g(X)


@program
def slots(compile: Compile) -> Iterator[Any]:
    class Options:
        __slots__ = ("scale",)

    options = Options()
    options.scale = 2.0
    g = compile(lambda x: x * options.scale)
    for options.scale in (2.0, 2.0, 2.0, 2.0, 4.0, 2.0):
        yield g(X)


@program
def data_classes(compile: Compile) -> Iterator[Any]:
    @dataclasses.dataclass
    class Options:
        scale: float = 2.0
        shift: Any = None

    options = Options()
    g = compile(lambda x: x * options.scale + (0 if options.shift is None else options.shift))
    for _ in range(4):
        yield g(X)
    options.shift = X
    yield g(X)
    options.scale = 1.0
    yield g(X)


@program
def context_managers_of_ones_own(compile: Compile) -> Iterator[Any]:
    state = {"scale": 1.0}

    @contextlib.contextmanager
    def scaled(by: float) -> Iterator[None]:
        before, state["scale"] = state["scale"], by
        try:
            yield
        finally:
            state["scale"] = before

    def f(x: Any) -> Any:
        with scaled(3.0):
            y = x * state["scale"]
        return y + state["scale"]

    g = compile(f)
    for _ in range(5):
        yield g(X)
    state["scale"] = 10.0
    yield g(X)


@program
def loops_and_exceptions(compile: Compile) -> Iterator[Any]:
    def f(x: Any, limit: int) -> Any:
        total, number = torch.zeros(()), 0
        while True:
            number += 1
            if number > limit:
                break
            try:
                if number % 2:
                    raise KeyError(number)
                total = total + x.sum()
            except KeyError as error:
                total = total * error.args[0]
            finally:
                total = total + 1
        return total

    g = compile(f)
    for limit in (3, 3, 3, 3, 4, 0, 3):
        yield g(X, limit)


@program
def generators_inside(compile: Compile) -> Iterator[Any]:
    def parts(x: Any) -> Iterator[Any]:
        for row in x:
            yield row * 2

    g = compile(lambda x: torch.stack([*parts(x)]) + sum(1 for _ in parts(x)))
    for rows in (2, 2, 2, 2, 1, 2):
        yield g(X[:rows])


@program
def text_and_sets(compile: Compile) -> Iterator[Any]:
    names = {"a", "b"}
    g = compile(lambda x: x * len({*names, "c"}) if f"{len(names)}!" == "2!" else x)
    for _ in range(4):
        yield g(X)
    names.add("d")
    yield g(X)


@program
def a_module_of_functions(compile: Compile) -> Iterator[Any]:
    import types

    space = types.ModuleType("space")
    space.factor = 2.0  # type: ignore[attr-defined]
    g = compile(lambda x: x * space.factor)  # type: ignore[attr-defined]
    for _ in range(4):
        yield g(X)
    space.factor = 3.0  # type: ignore[attr-defined]
    yield g(X)


@left_alone
def the_clock(compile: Compile) -> Iterator[Any]:
    ticks = []
    g = compile(lambda x: (ticks.append(time.perf_counter()), x + 1)[1])
    for _ in range(6):
        yield g(X), len(ticks)


@program
def the_environment(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x * float(os.environ.get("FLAMBEAU_TEST_FACTOR", "2")))
    for value in ("2", "2", "2", "2", "3", "2"):
        os.environ["FLAMBEAU_TEST_FACTOR"] = value
        yield g(X)
    del os.environ["FLAMBEAU_TEST_FACTOR"]


@left_alone
def warnings_are_given(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        warnings.warn("careful", stacklevel=2)
        return x + 1

    g = compile(f)
    for _ in range(6):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            yield g(X)
        yield len(given)


@left_alone
def arrays_of_numpy(compile: Compile) -> Iterator[Any]:
    table = np.ones(3, np.float32)
    g = compile(lambda x: x + torch.from_numpy(table))
    for number in range(6):
        table[0] = number
        yield g(X)


@left_alone
def a_cache_that_fills(compile: Compile) -> Iterator[Any]:
    cache: dict[int, Any] = {}

    def f(x: Any) -> Any:
        cache[len(cache)] = x.sum()
        return cache[len(cache) - 1] * 2

    g = compile(f)
    for number in range(6):
        yield g(X + number), len(cache)


# ----- layers -------------------------------------------------------------------------------------------------------


@program
def lists_of_modules(compile: Compile) -> Iterator[Any]:
    layers = nn.ModuleList([nn.Linear(3, 3)])

    def f(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    g = compile(f)
    for _ in range(4):
        yield g(X)
    layers.append(nn.ReLU())
    yield g(X)
    layers[0] = nn.Linear(3, 2)
    yield g(X)


@program
def weights_in_common(compile: Compile) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh(), nn.Linear(3, 3, bias=False))
    model[2].weight = model[0].weight
    g = compile(model)
    for _ in range(5):
        g(X).sum().backward()
        yield model[0].weight.grad
        model.zero_grad()
    model[2].weight = nn.Parameter(torch.zeros(3, 3))
    yield g(X)


@program
def layers_that_change_their_state(compile: Compile) -> Iterator[Any]:
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
    normal = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    g = compile(lambda x: spectral(normal(x)))
    for _ in range(6):
        yield g(X)
    yield dict(spectral.state_dict())


@program
def statistics_with_another_momentum(compile: Compile) -> Iterator[Any]:
    norm = nn.BatchNorm1d(3)
    g = compile(norm)
    for number, momentum in enumerate((0.1, 0.1, 0.1, 0.1, 0.5, 0.1)):
        norm.momentum = momentum
        yield g(X + number), norm.running_mean, norm.num_batches_tracked


@program
def another_dropout(compile: Compile) -> Iterator[Any]:
    dropout = nn.Dropout(0.5)
    g = compile(dropout)
    for dropout.p in (0.5, 0.5, 0.5, 0.5, 0.1, 0.0, 1.0, 0.5):
        yield g(X)


@program
def frozen_layers(compile: Compile) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    g = compile(model)
    for frozen in (False, False, False, False, True, False):
        model[0].requires_grad_(not frozen)
        model.zero_grad()
        g(X).sum().backward()
        yield [each.grad for each in model.parameters()]


@program
def another_dtype_of_a_model(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 2)
    g = compile(model)
    for _ in range(4):
        yield g(X)
    model.double()
    yield g(X.double())
    model.float()
    yield g(X)


@program
def copies_of_a_model(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 2)
    g = compile(lambda m, x: m(x))
    for _ in range(4):
        yield g(model, X)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.zero_()
    yield g(other, X), g(model, X)


@program
def a_method_is_compiled(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 2)
    g = compile(model.forward)
    for _ in range(4):
        yield g(X)
    model.bias = None
    yield g(X)


@left_alone
def recomputed_activations(compile: Compile) -> Iterator[Any]:
    from flambeau.utils.checkpoint import checkpoint

    layer = nn.Linear(3, 3)
    g = compile(lambda x: checkpoint(layer, x, use_reentrant=False).sum())
    for _ in range(5):
        layer.zero_grad()
        g(X).backward()
        yield layer.weight.grad


# ----- gradients and training ---------------------------------------------------------------------------------------


@program
def several_gradients(compile: Compile) -> Iterator[Any]:
    g = compile(lambda a, b: ((a * b).sum(), (a + b).mean()))
    for needs in ((True, True),) * 4 + ((True, False), (False, True), (False, False), (True, True)):
        a, b = (X.clone().requires_grad_(each) for each in needs)
        first, second = g(a, b)
        if any(needs):
            (first + second).backward()
        yield first, second, a.grad, b.grad


@program
def gradients_that_arrive_with_gaps(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x.exp())
    for _ in range(4):
        x = X.clone().requires_grad_()
        y = g(x)
        y.backward(torch.arange(12.0).reshape(2, 6)[:, ::2])
        yield x.grad
    x = X.clone().requires_grad_()
    g(x).backward(torch.tensor(2.0).expand(2, 3))
    yield x.grad


@program
def gradients_inside(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((x**3).sum(), x)
        return slope

    g = compile(f)
    for number in range(6):
        yield g(X + number)


@program
def a_step_by_hand(compile: Compile) -> Iterator[Any]:
    weight = torch.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        loss = ((x * weight).sum(1) - 1).square().mean()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.01)
            weight.grad = None
        return loss.detach()

    g = compile(step)
    for number in range(7):
        yield g(X + number), weight, weight.grad, weight._version


@program
def moving_averages(compile: Compile) -> Iterator[Any]:
    model, average = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)
        return loss.detach()

    g = compile(step)
    for number in range(7):
        yield g(X + number), average.weight


@program
def two_optimizers(compile: Compile) -> Iterator[Any]:
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    one = torch.optim.Adam(first.parameters(), lr=0.1)
    other = torch.optim.RMSprop(second.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        one.zero_grad()
        other.zero_grad()
        loss = second(first(x).tanh()).square().mean()
        loss.backward()
        one.step()
        other.step()
        return loss.item()

    g = compile(step)
    for number in range(8):
        if number == 5:
            one.param_groups[0]["lr"] = 0.5
        if number == 6:
            other.add_param_group({"params": [torch.zeros(2, requires_grad=True)]})
        if number == 7:
            one.load_state_dict(one.state_dict())
        yield g(X + number), second.weight, one.state_dict()["state"][0]["step"]


@left_alone
def a_schedule_that_looks_at_the_loss(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.detach())
        return loss.detach()

    g = compile(step)
    for number in range(8):
        yield g(X * number), optimizer.param_groups[0]["lr"]


@program
def steps_that_stop_early(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if not torch.isfinite(loss):
            return None
        loss.backward()
        optimizer.step()
        return loss.detach()

    g = compile(step)
    for number in range(7):
        yield g(X * (NAN if number == 5 else 0.1)), model.weight


@program
def gradients_forgotten_by_hand(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 1)

    def step(x: Any, keep: bool) -> Any:
        y = model(x)
        old = model.weight.grad if keep else None
        for each in model.parameters():
            each.grad = None
        y.square().mean().backward()
        if old is not None:
            model.weight.grad = model.weight.grad * 0.5 + old
        return y.detach()

    g = compile(step)
    for number in range(12):
        if number == 10:
            model.weight.grad = torch.ones(1, 3)
        yield g(X + number, number > 4), model.weight.grad, model.bias.grad


@program
def a_gradient_put_back(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 1)

    def step(x: Any) -> Any:
        old = model.weight.grad
        model.weight.grad = None
        model(x).square().mean().backward()
        new, model.weight.grad = model.weight.grad, old
        return new

    g = compile(step)
    for number in range(8):
        model.weight.grad = torch.full((1, 3), float(number))
        yield g(X + number), model.weight.grad, model.bias.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_function_is_never_stale(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    compiled = any(each.programs for each in made)
    assert compiled != (name in LEFT_ALONE), [each.reasons for each in made]


def test_there_are_many() -> None:
    from . import test_never_stale

    assert len(PROGRAMS) + len(test_never_stale.PROGRAMS) >= 120
