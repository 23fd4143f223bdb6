"""Programs for functions that cannot be compiled whole: they run in parts, and everything is as without."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_never_stale import Compile, Program, X, results

PROGRAMS: dict[str, Program] = {}
TURNS = 16


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def again(name: str, make: Callable[[], Callable[..., Any]], *others: Any) -> None:
    """A program that calls a function many times, with `X` and now and then with something else."""

    def run(compile: Compile) -> Iterator[Any]:
        g = compile(make())
        for turn in range(TURNS):
            yield g(X + turn)
            if turn % 5 == 4:
                for each in others:
                    yield g(each.clone())

    PROGRAMS[name] = run


def log_in_the_middle() -> Any:
    losses: list[float] = []

    def f(x: Any) -> Any:
        y = (x * 2).relu() + 1
        losses.append(y.mean().item())
        return y.exp() - x

    return f


def two_breaks() -> Any:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        a = x * 2 + 1
        seen.append(a.sum().item())
        b = a.relu() * x
        seen.append(b.sum().item())
        c = b - a
        return c * 3, len(seen)

    return f


def early_return() -> Any:
    def f(x: Any) -> Any:
        y = x * 2 + 1
        y.add_(1)
        if y.sum() > 40:
            return y - 1
        z = y.exp()
        return z + 1

    return f


def loop_with_a_read() -> Any:
    def f(x: Any) -> Any:
        total = x.clone()
        total.add_(1)
        for turn in range(4):
            step = total * 0.5 + turn
            if step.max() > 9:
                break
            total = total + step.relu()
        else:
            total = -total
        return total * 2, turn

    return f


def while_with_a_read() -> Any:
    def f(x: Any) -> Any:
        x = x.clone().add_(1)
        count = 0
        while x.sum() < 200:
            x = x * 1.5 + 1
            count += 1
        return x / 2, count

    return f


def names_set_sometimes() -> Any:
    def f(x: Any) -> Any:
        y = x.clone().mul_(2)
        if y.sum() > 60:
            extra = y + 1
        z = y * 3
        return z + extra if y.sum() > 60 else z

    return f


def comprehension_names() -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        row = 3
        parts = [row * 2 for row in x]
        kept.append(parts[0].sum().item())
        total = sum([row.sum() for row in parts]) + row
        return total, row

    return f


def lambdas_inside() -> Any:
    def f(x: Any) -> Any:
        factor = x.clone().mul_(2).sum().item()
        double = lambda y: y * factor  # noqa: E731
        z = double(x) + 1
        return z.relu() - double(z)

    return f


def nonlocal_counter() -> Any:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        y = x * 2 + 1
        count += 1
        return y * count

    return f


def walrus() -> Any:
    def f(x: Any) -> Any:
        y = x.clone().mul_(2)
        if (total := y.sum()) > 30:
            y = y - total
        return y * 2 + total

    return f


def errors_caught() -> Any:
    def f(x: Any) -> Any:
        y = x * 2 + 1
        try:
            z = y @ y
        except RuntimeError as error:
            z = y + len(str(error)) * 0
        y.add_(1)
        if y.sum() > 50:
            z = z - 1
        return z * 2

    return f


def errors_raised() -> Any:
    def f(x: Any) -> Any:
        y = x.clone().mul_(2)
        if y.sum() > 1000:
            raise ValueError("too much")
        return y.exp() * 2

    return f


def contexts() -> Any:
    weight = torch.ones(3, requires_grad=True)

    def f(x: Any) -> Any:
        with torch.no_grad():
            y = x * weight
            y.add_(1)
            frozen = y.sum().item()
        z = (x * weight).sum() * frozen
        return z, y

    return f


def printing() -> Any:
    def f(x: Any) -> Any:
        y = x * 2 + 1
        with contextlib.redirect_stdout(io.StringIO()) as said:
            print(y.sum())
        return y * len(said.getvalue())

    return f


def defaults_and_keywords() -> Any:
    log: list[float] = []

    def f(x: Any, *rest: Any, scale: float = 2.0, **more: Any) -> Any:
        y = x * scale + len(rest) + len(more)
        log.append(y.sum().item())
        return y.relu() + scale

    return f


def unpacked() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        (a, b), *rest = (x * 2, x + 1), x, x
        log.append(a.sum().item())
        a, b = b, a
        return a - b * len(rest)

    return f


def changed_in_place() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        x += 1
        log.append(x.sum().item())
        x *= 2
        return x

    return f


def views_across() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        y = x.clone()
        row = y[0]
        log.append(row.sum().item())
        row.add_(10)
        return y * 2

    return f


def random_across() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        noise = torch.rand(2, 3)
        log.append(noise.sum().item())
        return nn.functional.dropout(x + noise, 0.5) + torch.randn(3)

    return f


def shadowed_builtins() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        sum = x * 2
        log.append(sum.mean().item())
        max = sum + 1
        return max - sum

    return f


def annotated() -> Any:
    log: list[float] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = x * 2
        z: float
        log.append(y.sum().item())
        z = 3.0
        return y + z

    return f


def deleted() -> Any:
    log: list[float] = []

    def f(x: Any) -> Any:
        y = x * 2
        log.append(y.sum().item())
        z = y + 1
        del y
        return z * 2

    return f


def recursion() -> Any:
    def f(x: Any, depth: int = 3) -> Any:
        y = x * 2 + 1
        if y.clone().mul_(1).sum() < 0 or depth == 0:
            return y
        return f(y * 0.5, depth - 1) + y

    return f


def decorated() -> Any:
    log: list[float] = []

    def counted(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            y = function(*args)
            log.append(y.sum().item())
            return y + len(log)

        return call

    @counted
    def f(x: Any) -> Any:
        return (x * 2).relu() + 1

    return f


for each in (
    log_in_the_middle, two_breaks, early_return, loop_with_a_read, while_with_a_read, names_set_sometimes,
    comprehension_names, lambdas_inside, nonlocal_counter, walrus, errors_caught, errors_raised, contexts, printing,
    defaults_and_keywords, unpacked, changed_in_place, views_across, random_across, shadowed_builtins, annotated,
    deleted, recursion, decorated,
):  # fmt: skip
    again(each.__name__, each, X * 30, -X, X[:, :1], X.double())


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        self.seen: list[float] = []
        self.scale = 1.0

    def forward(self, x: Any) -> Any:
        y = self.inner(x) * self.scale
        self.seen.append(float(y.detach().sum()))
        return y.relu() + len(self.seen)


class Child(Encoder):
    def forward(self, x: Any) -> Any:
        y = super().forward(x * 2)
        self.last = y.detach()
        return y - 1


@program
def a_module_that_logs(compile: Compile) -> Iterator[Any]:
    model = Encoder()
    g = compile(model)
    for turn in range(TURNS):
        y = g(X)
        y.sum().backward()
        yield y, [each.grad for each in model.parameters()], len(model.seen)
        if turn == 11:
            model.scale = 2.0


@program
def a_child_of_it(compile: Compile) -> Iterator[Any]:
    model = Child()
    g = compile(model)
    for _ in range(TURNS):
        yield g(X), model.last, model.seen[-1]


@program
def hooks_that_come_later(compile: Compile) -> Iterator[Any]:
    model = Encoder()
    g = compile(model)
    for turn in range(TURNS):
        yield g(X)
        if turn == 11:
            model.register_forward_hook(lambda module, args, output: output * 2)


@program
def another_forward_later(compile: Compile) -> Iterator[Any]:
    model = Encoder()
    g = compile(model)
    for turn in range(TURNS):
        yield g(X)
        if turn == 11:
            model.forward = lambda x: x * 5  # type: ignore[method-assign]


@program
def other_code_later(compile: Compile) -> Iterator[Any]:
    f = log_in_the_middle()
    g = compile(f)
    for turn in range(TURNS):
        yield g(X)
        if turn == 11:
            f.__code__ = two_breaks().__code__


@program
def other_defaults_later(compile: Compile) -> Iterator[Any]:
    f = defaults_and_keywords()
    g = compile(f)
    for turn in range(TURNS):
        yield g(X)
        if turn == 11:
            f.__kwdefaults__["scale"] = 5.0


FACTOR = 2.0


def helper(x: Any) -> Any:
    y = x * FACTOR
    SEEN.append(y.sum().item())
    return y + 1


SEEN: list[float] = []


def uses_helper(x: Any) -> Any:
    y = helper(x) * 2
    return y.relu() - helper(y)


@program
def a_helper_that_logs(compile: Compile) -> Iterator[Any]:
    global FACTOR, helper
    g = compile(uses_helper)
    before = FACTOR, helper
    try:
        for turn in range(TURNS):
            yield g(X)
            if turn == 9:
                FACTOR = 3.0
            if turn == 12:
                helper = lambda x: x * 7  # noqa: E731
    finally:
        FACTOR, helper = before


@program
def training_with_a_log(compile: Compile) -> Iterator[Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    history: list[float] = []

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        history.append(loss.item())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if norm > 0.5:
            history.append(norm.item())
        optimizer.step()
        return sum(history)

    g = compile(step)
    for turn in range(TURNS + 6):
        yield g(X[:, torch.randperm(3)]), len(history), list(model.parameters())
        if turn == 12:
            optimizer.param_groups[0]["lr"] = 0.001
        if turn == 16:
            model.eval()


@program
def steps_of_two_models(compile: Compile) -> Iterator[Any]:
    one, two = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(each.parameters(), lr=1e-3, momentum=0.9) for each in (one, two)]

    def step(x: Any) -> Any:
        made = one(x)
        for each in optimizers:
            each.zero_grad()
        first = two(made.detach()).square().mean()
        first.backward()
        optimizers[1].step()
        second = two(made).mean()
        second.backward()
        optimizers[0].step()
        return first.item() + second.item()

    g = compile(step)
    for _ in range(TURNS):
        yield g(X), list(one.parameters())


@program
def a_memory_between_calls(compile: Compile) -> Iterator[Any]:
    cell = nn.GRUCell(3, 3)
    memory = [torch.zeros(2, 3)]

    def f(x: Any) -> Any:
        state = cell(x, memory[0])
        memory[0] = state.detach()
        return (state * 2).relu().sum()

    g = compile(f)
    for _ in range(TURNS):
        loss = g(X)
        loss.backward()
        yield loss, memory[0], [each.grad for each in cell.parameters()]


LEFT_ALONE = {
    "nonlocal_counter",  # the name is of a closure
    "a_child_of_it",  # super() needs its frame
    "another_forward_later",
    "decorated",
}
"""Programs that may have no compiled part at the end."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_in_parts_is_never_stale(name: str) -> None:
    made: list[Compiled] = []
    programs: list[int] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))

        def call(*args: Any) -> Any:
            result = made[-1](*args)
            programs.append(len(made[-1].all_programs))
            return result

        return call

    SEEN.clear()
    expected = results(PROGRAMS[name], lambda each: each)
    SEEN.clear()
    assert results(PROGRAMS[name], compile) == expected
    if name not in LEFT_ALONE:
        assert max(programs), made[0].reasons


def test_parts_are_what_is_between_breaks() -> None:
    g = Compiled(log_in_the_middle())
    for turn in range(TURNS):
        g(X + turn)
    assert g.parts is not None
    assert [len(each.programs) for each in g.parts.compiled] == [1, 1]
