"""Functions whose first call is recorded: the second one runs the program, and nothing of the first is stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture.foresight import foreseen

from .test_never_stale import seen

F = nn.functional
X = torch.linspace(-2, 2, 12).reshape(3, 4).clone()
SCALE = [2.0]
FACTOR = 2.0
LAYER = nn.Linear(4, 4)


def first_hit(function: Any, *args: Any) -> int | None:
    """The number of the call that is the first to run a program; each call gives what the plain one gives."""
    compiled = Compiled(function)
    for number in range(1, 7):
        assert seen(compiled(*args)) == seen(function(*args))
        if compiled._hits:
            return number
    return None


class Net(nn.Module):
    """A small network of plain layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 6), nn.LayerNorm(6)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(2)])
        self.scale = 0.5

    def forward(self, x: Any) -> Any:
        x = self.norm(self.first(x))
        for block in self.blocks:
            x = x + self._scaled(block(x))
        return F.relu(x)

    def _scaled(self, x: Any) -> Any:
        return x * self.scale


def helper(x: Any) -> Any:
    return x * FACTOR


def chain(x: Any) -> Any:
    return (x * 2).relu() + 1


def with_helper(x: Any) -> Any:
    return helper(x) + chain(x)


def with_layer(x: Any) -> Any:
    return LAYER(x).relu()


def listed(x: Any) -> Any:
    return sum([x * each for each in (1, 2, 3)])


@pytest.mark.parametrize("function", [chain, with_helper, with_layer, listed], ids=lambda each: str(each.__name__))
def test_the_second_call_of_a_function_is_a_program(function: Callable[[Any], Any]) -> None:
    assert first_hit(function, X) == 2


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (Net, (3, 4)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
        (lambda: nn.LSTM(4, 5), (3, 2, 4)),
        (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval(), (2, 3, 6, 6)),
    ],
    ids=["net", "encoder", "lstm", "convolutions"],
)
@pytest.mark.parametrize("grad", [True, False])
def test_the_second_call_of_a_module_is_a_program(make: Callable[[], Any], shape: Any, grad: bool) -> None:
    with torch.set_grad_enabled(grad):
        assert first_hit(make(), torch.randn(shape)) == 2


def test_gradients_of_the_second_call() -> None:
    model = Net()
    compiled = Compiled(model)
    parameters = list(model.parameters())
    for turn in range(4):
        grads = [
            torch.autograd.grad(call(X + turn).square().sum(), parameters, allow_unused=True)
            for call in (model, compiled)
        ]
        assert seen(grads[0]) == seen(grads[1]), turn
    assert compiled._hits == 3


def test_gradients_that_were_there_before_a_first_call_stay() -> None:
    for accumulated in (True, False):
        torch.manual_seed(0)
        models = [nn.TransformerEncoderLayer(4, 2, 8, 0.0) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        calls = [models[0], Compiled(models[1])]
        for turn in range(4):
            for call, model in zip(calls, models, strict=True):
                call(X[:, None] + turn).sum().backward()
                if not accumulated:
                    model.zero_grad()
            grads = [[each.grad for each in model.parameters()] for model in models]
            assert seen(grads[0]) == seen(grads[1]), (accumulated, turn)


def test_only_lines_that_ran_are_guards() -> None:
    names: dict[str, Any] = {"unused": 1}
    exec("def f(x, which):\n    if which:\n        return x * unused\n    return x + 1\n", names)
    compiled = Compiled(names["f"])
    compiled(X, False)
    names["unused"] = 5
    assert seen(compiled(X, False)) == seen(X + 1)
    assert compiled._hits == 1
    for value in (5, 6):
        names["unused"] = value
        for _ in range(4):
            assert seen(compiled(X, True)) == seen(X * value)


def test_what_a_first_call_changes_is_no_guard_for_the_second() -> None:
    """What was found after the first call was not there before it."""
    texts = {
        "global": "def f(x):\n    global n\n    n = n + 1\n    return x * n\n",
        "attribute": "def f(x):\n    thing.n = thing.n + 1\n    return x * thing.n\n",
        "item": "def f(x):\n    items[0] = items[0] + 1\n    return x * items[0]\n",
        "list": "def f(x):\n    items.append(1)\n    return x * len(items)\n",
        "class": "def f(x):\n    Thing.m = Thing.m + 1\n    return x * Thing.m\n",
        "first time": "def f(x):\n    if not items[1:]:\n        items.append(3)\n    return x * len(items)\n",
        "default": "def f(x):\n    g.__defaults__ = (g.__defaults__[0] + 1,)\n    return g(x)\n",
    }
    for name, text in texts.items():
        outcomes = []
        for make in (lambda function: function, Compiled):
            scope: dict[str, Any] = {}
            exec(
                "class Thing:\n    m = 1\n    def __init__(self):\n        self.n = 1\n"
                "def g(x, by=1):\n    return x * by\n"
                f"thing, items, n = Thing(), [1], 1\n{text}",
                scope,
            )
            call = make(scope["f"])
            outcomes.append([seen(call(X)) for _ in range(6)])
        assert outcomes[0] == outcomes[1], name


def test_a_changed_closure_is_seen() -> None:
    def made() -> Any:
        count = 1

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            return x * count

        return f

    plain, compiled = made(), Compiled(made())
    for _ in range(6):
        assert seen(compiled(X)) == seen(plain(X))


def test_tensors_that_a_first_call_changes() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            return self.norm(x) * self.calls

    torch.manual_seed(0)
    plain, model = Counting(), Counting()
    compiled = Compiled(model)
    for turn in range(6):
        assert seen(compiled(X + turn)) == seen(plain(X + turn)), turn
        assert seen(list(model.buffers())) == seen(list(plain.buffers())), turn
        assert [each._version for each in model.buffers()] == [each._version for each in plain.buffers()], turn
    assert compiled._hits == 5


def test_an_array_that_a_first_call_replaces() -> None:
    outcomes = []
    for make in (lambda function: function, Compiled):
        weight = nn.Parameter(torch.ones(4))

        def f(x: Any, weight: Any = weight) -> Any:
            weight.data = weight.data * 2
            return x * weight

        call = make(f)
        outcomes.append([seen(call(X)) for _ in range(5)])
    assert outcomes[0] == outcomes[1]


def test_a_lazy_module_is_initialised_by_its_first_call() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    torch.manual_seed(0)
    compiled = Compiled(nn.Sequential(nn.LazyLinear(3), nn.ReLU()))
    torch.manual_seed(1)
    expected = [seen(plain(X)) for _ in range(5)]
    torch.manual_seed(1)
    assert [seen(compiled(X)) for _ in range(5)] == expected


def test_code_that_was_not_foreseen_is_watched() -> None:
    class Held:
        def scaled(self, x: Any) -> Any:
            return x * SCALE[0]

    held = Held()

    def f(x: Any, by: Any) -> Any:
        return by.scaled(x) + 1

    compiled = Compiled(f)
    for _ in range(5):
        assert seen(compiled(X, held)) == seen(X * 2.0 + 1)
    assert compiled._hits == 3
    assert not compiled.reasons
    SCALE[0] = 3.0
    try:
        assert seen(compiled(X, held)) == seen(X * 3.0 + 1)
    finally:
        SCALE[0] = 2.0


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    print(end='')\n    return x\n",
        "def f(x):\n    return eval('x')\n",
        "def f(x):\n    return x * vars(x)['n'] if 0 else x\n",
        "def f(x):\n    return x if not x.__dict__ else x * 2\n",
        "def f(x):\n    (x * w).sum().backward()\n    return x\n",
    ],
)
def test_what_may_read_anything_is_not_foreseen(text: str) -> None:
    names: dict[str, Any] = {"w": torch.ones(4, requires_grad=True)}
    exec(text, names)
    assert foreseen(names["f"]) is None


def test_large_models_are_watched() -> None:
    names: dict[str, Any] = {}
    exec("".join([f"def f{each}(x):\n    return f{each + 1}(x) + 1\n" for each in range(80)]) + "f80 = abs\n", names)
    assert foreseen(names["f0"]) is None
    assert first_hit(names["f0"], X) == 3


def test_names_that_are_computed() -> None:
    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain1, self.gain2 = 2.0, 3.0
            self.which = 1

        def forward(self, x: Any) -> Any:
            return x * getattr(self, f"gain{self.which}")

    model = Chosen()
    compiled = Compiled(model)
    for _ in range(4):
        assert seen(compiled(X)) == seen(X * 2.0)
    model.gain1 = 7.0
    assert seen(compiled(X)) == seen(X * 7.0)
