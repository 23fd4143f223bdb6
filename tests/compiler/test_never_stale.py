"""Compiled functions beside themselves uncompiled, while everything that they may depend on changes between calls.

A program is a function that yields, call by call, what one call of a function gives; it is handed `compile`, which is
`flambeau.compile` or does nothing. Both must yield the same.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

Compile = Callable[[Any], Any]
Program = Callable[[Compile], Iterator[Any]]

PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def seen(value: Any) -> Any:
    """What can be compared of a result."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf, repr(value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value), [seen(each) for each in value]
    if isinstance(value, dict):
        return {key: seen(each) for key, each in value.items()}
    return value


def results(made: Program, compile: Compile) -> list[Any]:
    torch.manual_seed(0)
    found: list[Any] = []
    try:
        for each in made(compile):
            found.append(seen(each))  # noqa: PERF401  (what came before an error is compared too)
    except Exception as error:
        found += [type(error), str(error)[:60]]  # what follows may be about the line
    return found


X = torch.arange(6.0).reshape(2, 3)


# ----- what a function reads ----------------------------------------------------------------------------------------

FACTOR = 2.0
TABLE = {"a": 1.0}
NUMBERS = [1.0, 2.0]


@program
def a_global_changes(compile: Compile) -> Iterator[Any]:
    global FACTOR
    f = compile(lambda x: x * FACTOR)
    for FACTOR in (2.0, 2.0, 2.0, 2.0, 3.0, 2.0, True, 2, 0.0, -0.0, 2.0):  # noqa: B007  (f reads it)
        yield f(X)
        yield 1 / f(X)


@program
def an_item_of_a_global_changes(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: x + TABLE["a"])
    for value in (1.0, 1.0, 1.0, 1.0, 5.0, 1.0):
        TABLE["a"] = value
        yield f(X)
    TABLE["a"] = 1.0


@program
def a_list_grows(compile: Compile) -> Iterator[Any]:
    f = compile(lambda x: sum(NUMBERS) * x)
    for _ in range(4):
        yield f(X)
    NUMBERS.append(3.0)
    yield f(X)
    NUMBERS.pop()
    yield f(X)


@program
def a_closure_changes(compile: Compile) -> Iterator[Any]:
    count = 1

    def f(x: Any) -> Any:
        return x + count

    g = compile(f)
    for count in (1, 1, 1, 1, 2, 2, 2, 3, 1):  # noqa: B007  (f reads it)
        yield g(X)


@program
def a_default_changes(compile: Compile) -> Iterator[Any]:
    def f(x: Any, scale: float = 2.0) -> Any:
        return x * scale

    g = compile(f)
    for _ in range(4):
        yield g(X)
    yield g(X, 3.0)
    yield g(X, scale=4.0)
    f.__defaults__ = (7.0,)
    yield g(X)


@program
def the_code_of_a_function_changes(compile: Compile) -> Iterator[Any]:
    def inner(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x * 10

    g = compile(lambda x: inner(x) * 2)
    for _ in range(4):
        yield g(X)
    inner.__code__ = other.__code__
    yield g(X)


@program
def a_global_function_is_replaced(compile: Compile) -> Iterator[Any]:
    space = {"torch": torch}
    exec("def inner(x): return x + 1\ndef f(x): return inner(x) * 2", space)
    g = compile(space["f"])
    for _ in range(4):
        yield g(X)
    space["inner"] = lambda x: x * 10
    yield g(X)


@program
def a_builtin_is_shadowed(compile: Compile) -> Iterator[Any]:
    space: dict[str, Any] = {}
    exec("def f(x): return x * len([1, 2])", space)
    g = compile(space["f"])
    for _ in range(4):
        yield g(X)
    space["len"] = lambda _: 7
    yield g(X)


@program
def a_function_of_the_library_is_replaced(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        return nn.functional.relu(x - 2)

    g = compile(f)
    for _ in range(4):
        yield g(X)
    before = nn.functional.relu
    try:
        nn.functional.relu = lambda x: x * 100
        yield g(X)
    finally:
        nn.functional.relu = before
    yield g(X)


# ----- modules ------------------------------------------------------------------------------------------------------


class Model(nn.Module):
    scale = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)
        self.flag = True
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x: Any) -> Any:
        y = self.dropout(self.linear(x)) * self.scale + self.offset
        return y if self.flag else -y


@program
def training_and_evaluation(compile: Compile) -> Iterator[Any]:
    model = Model()
    g = compile(model)
    for mode in (True, True, True, True, False, False, False, False, True, False):
        model.train(mode)
        yield g(X)


@program
def attributes_of_a_module_change(compile: Compile) -> Iterator[Any]:
    model = Model().eval()
    g = compile(model)
    for flag in (True, True, True, True, False, False, True):
        model.flag = flag
        yield g(X)
    model.scale = 5.0  # an attribute of its own hides the one of the class
    yield g(X)
    del model.scale
    yield g(X)


@program
def attributes_of_a_class_change(compile: Compile) -> Iterator[Any]:
    class Own(Model):
        pass

    model = Own().eval()
    g = compile(model)
    for _ in range(4):
        yield g(X)
    Own.scale = 3.0
    yield g(X)
    Own.forward = lambda self, x: x  # type: ignore[method-assign]
    yield g(X)


@program
def a_method_is_replaced(compile: Compile) -> Iterator[Any]:
    model = Model().eval()
    g = compile(model)
    for _ in range(4):
        yield g(X)
    model.linear.forward = lambda x: x * 3  # type: ignore[method-assign]
    yield g(X)
    del model.linear.forward
    yield g(X)


@program
def submodules_are_replaced(compile: Compile) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    g = compile(model)
    for _ in range(4):
        yield g(X)
    model[1] = nn.Tanh()
    yield g(X)
    model.append(nn.Sigmoid())
    yield g(X)
    del model[1]
    yield g(X)
    model[0] = nn.Linear(3, 3, bias=False)
    yield g(X)


@program
def parameters_change(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 3)
    g = compile(model)
    for _ in range(4):
        yield g(X)
    with torch.no_grad():
        model.weight.mul_(2)
    yield g(X)
    model.weight.data = torch.ones(3, 3)
    yield g(X)
    model.weight = nn.Parameter(torch.zeros(5, 3))
    model.bias = None
    yield g(X)
    model.weight.requires_grad_(False)
    yield g(X)
    model.load_state_dict({"weight": torch.full((5, 3), 0.5)})
    yield g(X)


@program
def buffers_change(compile: Compile) -> Iterator[Any]:
    model = Model().eval()
    g = compile(model)
    for _ in range(4):
        yield g(X)
    model.offset = torch.tensor([1.0, 2.0, 3.0])
    yield g(X)
    model.offset.add_(1)
    yield g(X)
    model.offset = torch.tensor(4.0)
    yield g(X)


@program
def hooks_come_and_go(compile: Compile) -> Iterator[Any]:
    model = Model().eval()
    g = compile(model)
    for _ in range(4):
        yield g(X)
    handle = model.linear.register_forward_hook(lambda module, args, output: output * 2)
    yield g(X)
    handle.remove()
    yield g(X)
    handle = model.linear.weight.register_hook(lambda grad: grad * 2)
    g(X).sum().backward()
    yield model.linear.weight.grad
    handle.remove()


@program
def batch_norm_counts(compile: Compile) -> Iterator[Any]:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    g = compile(model)
    for number in range(6):
        yield g(X + number)
        yield dict(model.state_dict())
    model.eval()
    for _ in range(4):
        yield g(X)


@program
def a_module_counts_its_calls(compile: Compile) -> Iterator[Any]:
    class Counter(nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x * self.calls

    model = Counter()
    g = compile(model)
    for _ in range(8):
        yield g(X), model.calls


@program
def a_module_keeps_its_last_result(compile: Compile) -> Iterator[Any]:
    class Keeper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.zeros(2, 3)

        def forward(self, x: Any) -> Any:
            self.last = self.last + x
            return self.last * 2

    model = Keeper()
    g = compile(model)
    for _ in range(8):
        yield g(X), model.last


# ----- inputs -------------------------------------------------------------------------------------------------------


@program
def shapes_dtypes_and_strides(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: (x * 2 + 1).sum(-1))
    for _ in range(4):
        yield g(X)
    for x in (
        X[:1],
        X[:0],
        X.double(),
        X.long(),
        X.t(),
        X[:, ::2],
        X.reshape(3, 2),
        torch.tensor(3.0),
        X,
        X.bfloat16(),
    ):
        yield g(x)


@program
def sizes_that_python_sees(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x / x.shape[0] + len(x) + x.numel())
    for rows in (2, 2, 2, 2, 3, 5, 2, 0, 1):
        yield g(torch.ones(rows, 3))


@program
def numbers_as_arguments(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x, n, flag=False: x**n if flag else x + n)
    for n in (1, 1, 1, 1, 2, 1.0, True, 1):
        yield g(X, n)
        yield g(X, n, flag=True)


@program
def containers_as_arguments(compile: Compile) -> Iterator[Any]:
    def f(batch: Any, names: Any = ("a",)) -> Any:
        return {name: batch[name] * 2 for name in names}

    g = compile(f)
    for _ in range(4):
        yield g({"a": X, "b": X + 1})
    yield g({"a": X, "b": X + 1}, ("a", "b"))
    yield g({"b": X, "a": X + 1})
    yield g({"a": X.double(), "b": X})
    yield g({"a": X})


@program
def inputs_that_are_changed(compile: Compile) -> Iterator[Any]:
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        y.mul_(2)
        return x + y

    g = compile(f)
    for _ in range(6):
        x, y = X.clone(), X.clone()
        yield g(x, y), x, y, x._version
    x = X.clone()
    yield g(x, x), x
    x = X.clone()
    yield g(x[0], x[1]), x
    yield g(x, x.view(2, 3)), x


@program
def inputs_that_are_returned(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x, y: (x, y * 2, x))
    for _ in range(5):
        x = X.clone()
        a, b, c = g(x, X)
        yield a is x, c is x, b


@program
def views_that_are_returned(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: (x * 2).reshape(3, 2)[:, 1])
    weight = torch.ones(3, 3, requires_grad=True)
    h = compile(lambda x: (x @ weight).t()[1:])
    both = compile(lambda x: ((y := x * 2), y.view(-1)))
    of_input = compile(lambda x: x.view(-1))
    for _ in range(5):
        y = g(X)
        yield y, y._is_view(), y._base, y.add_(1), y._version
        z = h(X)
        z.square().sum().backward()
        yield z, weight.grad
        first, second = both(X)
        first.add_(1)
        yield second, second._version
        x = X.clone()
        of_input(x).add_(1)
        yield x


@program
def gradient_modes(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x * x)
    x = X.clone().requires_grad_()
    for _ in range(4):
        yield g(x)
    with torch.no_grad():
        for _ in range(3):
            yield g(x)
    with torch.inference_mode():
        yield g(x).is_inference()
    yield g(x), g(X), g(x * 2)


@program
def gradients(compile: Compile) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    g = compile(model)
    for number in range(6):
        x = (X + number).requires_grad_()
        output = g(x)
        (output * output).sum().backward()
        yield output, x.grad, [each.grad for each in model.parameters()]
        if number % 2:
            model.zero_grad()


@program
def part_of_the_outputs_is_used(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: (x.sin(), x.cos(), x.detach() * 2))
    for _ in range(5):
        x = X.clone().requires_grad_()
        first, _, third = g(x)
        first.sum().backward()
        yield x.grad, third.requires_grad


@program
def backward_twice(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: (x * x).exp())
    for _ in range(4):
        x = X.clone().requires_grad_()
        y = g(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        yield x.grad
    y.backward()  # says that the graph is gone
    yield "not reached"


@program
def a_weight_changes_before_backward(compile: Compile) -> Iterator[Any]:
    weight = torch.ones(3, requires_grad=True)
    g = compile(lambda x, w: x * w * w)
    for _ in range(4):
        g(X, weight).sum().backward()
        yield weight.grad
    loss = g(X, weight).sum()
    with torch.no_grad():
        weight.add_(1)
    with contextlib.suppress(RuntimeError):
        loss.backward()
        yield "not refused"
    yield weight.grad


@program
def an_output_changes_before_backward(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x.exp())
    for _ in range(5):
        x = X.clone().requires_grad_()
        y = g(x)
        with torch.no_grad():
            y.add_(1)
        try:
            y.sum().backward()
            yield "not refused"
        except RuntimeError:
            yield "refused"


@program
def a_result_that_cannot_be_differentiated(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        y = x.exp()
        y.add_(1)
        return y

    g = compile(f)
    for _ in range(5):
        x = X.clone().requires_grad_()
        y = g(x)
        yield y
        try:
            y.sum().backward()
            yield x.grad
        except RuntimeError:
            yield "refused"


@program
def an_input_with_a_history_is_changed(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        x.mul_(3)
        return x.sum()

    g = compile(f)
    for _ in range(5):
        leaf = X.clone().requires_grad_()
        x = leaf * 2
        g(x)
        x.sum().backward()
        yield leaf.grad


@program
def autocast_all_the_time(compile: Compile) -> Iterator[Any]:
    layer = nn.Linear(3, 3)
    g = compile(layer)
    yield g(X), g(X), g(X), g(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(6):
            yield g(X)


# ----- settings -----------------------------------------------------------------------------------------------------


@program
def the_default_dtype(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x + torch.ones(3) / 3)
    for _ in range(4):
        yield g(X)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        yield g(X)
    finally:
        torch.set_default_dtype(before)
    yield g(X)


@program
def kernels_of_numpy_alone(compile: Compile) -> Iterator[Any]:
    x = torch.linspace(0, 1, 5000)
    g = compile(lambda: x.exp().sum())
    for _ in range(4):
        yield g()
    with torch.backends.cpu.numpy_only():
        yield g()
    yield g()


@program
def autocast(compile: Compile) -> Iterator[Any]:
    layer = nn.Linear(3, 3)
    g = compile(layer)
    for _ in range(4):
        yield g(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(3):
            yield g(X)
    yield g(X)


@program
def autocast_inside(compile: Compile) -> Iterator[Any]:
    layer = nn.Linear(3, 3)

    def f(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x)

    g = compile(f)
    for _ in range(5):
        yield g(X)


@program
def random_numbers(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x + torch.rand(3) + torch.randn_like(x))
    for _ in range(5):
        yield g(X)
    torch.manual_seed(3)
    yield g(X), torch.rand(2)


@program
def generators(compile: Compile) -> Iterator[Any]:
    source = torch.Generator()
    source.manual_seed(1)
    g = compile(lambda x: x + torch.rand(3, generator=source))
    for _ in range(5):
        yield g(X)
    source.manual_seed(1)
    yield g(X)


# ----- Python -------------------------------------------------------------------------------------------------------


@program
def decisions_about_values(compile: Compile) -> Iterator[Any]:
    g = compile(lambda x: x * 2 if x.sum() > 0 else x - 1)
    for sign in (1, 1, 1, 1, -1, 1, -1):
        yield g(X * sign)


@program
def a_read_that_is_returned(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        return x.sum().item()

    g = compile(f)
    for number in range(6):
        yield g(X + number)


@program
def a_read_that_decides(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        value = x.sum().item()
        return value if value > 0 else 0.0

    g = compile(f)
    for sign in (1, 1, 1, 1, -1, 1):
        yield g(X * sign)


@program
def exceptions(compile: Compile) -> Iterator[Any]:
    def f(x: Any) -> Any:
        if x.shape[0] == 3:
            raise ValueError("three rows")
        try:
            return x.reshape(7)
        except RuntimeError:
            return x + 1

    g = compile(f)
    for _ in range(4):
        yield g(X)
    yield g(X.reshape(3, 2))


@program
def printing(compile: Compile) -> Iterator[Any]:
    lines: list[str] = []

    def f(x: Any) -> Any:
        lines.append("called")
        return x + 1

    g = compile(f)
    for _ in range(6):
        yield g(X), len(lines)


@program
def a_generator_argument(compile: Compile) -> Iterator[Any]:
    numbers = iter(range(100))
    g = compile(lambda x: x + next(numbers))
    for _ in range(6):
        yield g(X)


@program
def random_of_python(compile: Compile) -> Iterator[Any]:
    import random

    random.seed(0)
    g = compile(lambda x: x + random.random())
    for _ in range(6):
        yield g(X)


@program
def random_of_numpy(compile: Compile) -> Iterator[Any]:
    import numpy as np

    np.random.seed(0)
    g = compile(lambda x: x + float(np.random.rand()))
    for _ in range(6):
        yield g(X)


@program
def recursion(compile: Compile) -> Iterator[Any]:
    def f(x: Any, depth: int) -> Any:
        return x if depth == 0 else f(x * 2, depth - 1) + depth

    g = compile(f)
    for depth in (3, 3, 3, 3, 1, 5, 3):
        yield g(X, depth)


@program
def comprehensions_and_closures(compile: Compile) -> Iterator[Any]:
    def f(xs: Any) -> Any:
        scaled = [(lambda k: x * k)(number) for number, x in enumerate(xs)]  # noqa: PLC3002  (a closure over x)
        return sum(each.sum() for each in scaled)

    g = compile(f)
    for count in (2, 2, 2, 2, 3, 2):
        yield g([X] * count)


@program
def a_compiled_function_calls_another(compile: Compile) -> Iterator[Any]:
    factor = [2.0]
    inner = compile(lambda x: x * factor[0])
    outer = compile(lambda x: inner(x) + inner(x + 1))
    for value in (2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 2.0):
        factor[0] = value
        yield outer(X)
        yield inner(X)


@program
def objects_as_arguments(compile: Compile) -> Iterator[Any]:
    class Options:
        def __init__(self) -> None:
            self.scale = 2.0

    options = Options()
    g = compile(lambda x, o: x * o.scale)
    for _ in range(4):
        yield g(X, options)
    options.scale = 3.0
    yield g(X, options)
    yield g(X, Options())


@program
def properties(compile: Compile) -> Iterator[Any]:
    class Options:
        hidden = 2.0

        @property
        def scale(self) -> float:
            return self.hidden

    options = Options()
    g = compile(lambda x: x * options.scale)
    for _ in range(4):
        yield g(X)
    options.hidden = 3.0
    yield g(X)
    Options.scale = 5.0  # type: ignore[assignment, method-assign]
    yield g(X)


@program
def names_by_getattr(compile: Compile) -> Iterator[Any]:
    class Options:
        first, second = 1.0, 2.0

    options, chosen = Options(), ["first"]
    g = compile(lambda x: x * getattr(options, chosen[0]))
    for _ in range(4):
        yield g(X)
    options.first = 7.0
    yield g(X)
    chosen[0] = "sec" + "ond"
    yield g(X)
    options.second = 9.0
    yield g(X)


@program
def custom_functions(compile: Compile) -> Iterator[Any]:
    class Double(torch.autograd.Function):
        factor = 2.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * Double.factor

    g = compile(lambda x: Double.apply(x).sum())
    for factor in (2.0, 2.0, 2.0, 2.0, 5.0, 2.0):
        Double.factor = factor
        x = X.clone().requires_grad_()
        g(x).backward()
        yield x.grad


# ----- steps of training --------------------------------------------------------------------------------------------


def trained(compile: Compile, make: Any, schedule: Any = None, **options: Any) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = make(model.parameters(), **options)
    scheduler = None if schedule is None else schedule(optimizer)
    target = torch.ones(2, 2)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return loss.detach()

    g = compile(step)
    for number in range(9):
        if number == 6:
            optimizer.param_groups[0]["lr"] *= 0.5
        if number == 7:
            model[0].weight.requires_grad_(False)
        yield g(X + number)
        yield [each.grad for each in model.parameters()], [each._version for each in model.parameters()]
    yield dict(model.state_dict()), optimizer.state_dict()["param_groups"]


@program
def steps_of_sgd(compile: Compile) -> Iterator[Any]:
    yield from trained(compile, torch.optim.SGD, lr=0.1, momentum=0.9)


@program
def steps_of_adam(compile: Compile) -> Iterator[Any]:
    yield from trained(compile, torch.optim.Adam, lr=0.1)


@program
def steps_with_a_schedule(compile: Compile) -> Iterator[Any]:
    yield from trained(compile, torch.optim.AdamW, lambda each: torch.optim.lr_scheduler.StepLR(each, 2), lr=0.1)


@program
def gradients_that_add_up(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 2)

    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    g = compile(step)
    for number in range(9):
        yield g(X + number), model.weight.grad
        if number in (5, 6):
            model.zero_grad(set_to_none=number == 5)


@program
def clipped_gradients(compile: Compile) -> Iterator[Any]:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        return nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    g = compile(step)
    for number in range(6):
        yield g(X + number), model.weight.grad


# ----- the tests ----------------------------------------------------------------------------------------------------

NEVER_COMPILED = {
    "a_generator_argument",
    "a_module_counts_its_calls",
    "a_result_that_cannot_be_differentiated",
    "an_input_with_a_history_is_changed",
    "printing",
    "random_of_numpy",
    "random_of_python",
}
"""Programs that do what cannot be repeated: a compiled function runs them as they stand."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_function_is_never_stale(name: str) -> None:
    made: list[Compiled] = []

    def compile(function: Any) -> Any:
        made.append(Compiled(function))
        return made[-1]

    assert results(PROGRAMS[name], compile) == results(PROGRAMS[name], lambda each: each)
    compiled = any(each.programs for each in made)
    assert compiled != (name in NEVER_COMPILED), [each.reasons for each in made]


def test_threads() -> None:
    g = torch.compile(lambda x: (x * 2).relu() + 1)
    expected = seen((X * 2).relu() + 1)
    found: list[Any] = []

    def run() -> None:
        found.extend([seen(g(X)) for _ in range(50)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 200
    assert all(each == expected for each in found)


def test_full_graphs_say_why_not() -> None:
    @torch.compile(fullgraph=True)
    def f(x: Any) -> Any:
        x.mul_(2)
        return x if x.sum() > 0 else x + 1

    for _ in range(4):
        with pytest.raises(
            torch._dynamo.exc.Unsupported, match=r"the elements of a tensor, by item .*test_never_stale"
        ):
            f(X.clone())


def test_disabled_functions_are_not_compiled() -> None:
    @torch.compiler.disable
    def inner(x: Any) -> Any:
        return x + 1

    g = Compiled(lambda x: inner(x) * 2)
    for _ in range(5):
        g(X)
    assert not g.programs
    assert "not to be compiled" in g.reasons[-1]


def test_reset_forgets() -> None:
    g = Compiled(lambda x: x + 1)
    for _ in range(4):
        g(X)
    assert g.programs
    g.forget()
    assert not g.programs
