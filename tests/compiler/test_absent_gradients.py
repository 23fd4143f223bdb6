"""Losses that some results of a compiled call take no part in: no gradient arrives there, which is not zero."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau import nn
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.emit.absent import PartialBackward

Make = Callable[[Any], tuple[Callable[[Any], Sequence[Any]], list[Any]]]


def _leaves(torch: Any, *rows: Sequence[float]) -> list[Any]:
    return [torch.tensor(each, requires_grad=True) for each in rows]


def infinite_derivatives(torch: Any) -> Any:
    (a,) = _leaves(torch, (0.0, 4.0))

    def function(x: Any) -> Any:
        y = a * x
        return y * 2, y.sqrt(), y.log()

    return function, [a]


def paths_that_join(torch: Any) -> Any:
    a, b, c = _leaves(torch, (0.0, 4.0), (1.0, -0.0), (0.5, 2.0))

    def function(x: Any) -> Any:
        y, z = a * x, b * x
        w = y + z
        return w * c, y.sqrt() * w, z * z * y, w.sqrt()

    return function, [a, b, c]


def rows_of_one_tensor(torch: Any) -> Any:
    a, b = _leaves(torch, (0.0, 4.0), (0.0, 9.0))

    def function(x: Any) -> Any:
        stacked = torch.stack([a * x, b * x])
        first, second = stacked.sqrt().unbind(0)
        return first * 2, second * 3, torch.cat([stacked[0], stacked[1]]).split(2)[1].log()

    return function, [a, b]


def many_uses(torch: Any) -> Any:
    a, b = _leaves(torch, (0.0, 1.0), (2.0, 3.0))

    def function(x: Any) -> Any:
        y = x * a
        total = y
        for _ in range(6):
            total = total + y * b
        return total, y.sqrt(), (y + b).detach() * b

    return function, [a, b]


def paths_of_other_strides(torch: Any) -> Any:
    a, b, c = _leaves(torch, (0.5, 1.0, 2.0, -1.0, 3.0, 0.25), (1.0, -2.0, 0.5, 4.0, 3.0, 2.0), (2.0, 1.0, 0.0))

    def function(x: Any) -> Any:
        y = (a * x.repeat(3)).view(2, 3)
        return y, y.t() * b.view(3, 2), y * c

    return function, [a, b, c]


def gradients(function: Any, leaves: Sequence[Any], torch: Any, calls: int) -> list[Any]:
    seen: list[Any] = []
    for _ in range(calls):
        count = len(function(torch.ones(2)))
        for chosen in [each for size in range(1, count + 1) for each in itertools.combinations(range(count), size)]:
            for leaf in leaves:
                leaf.grad = None
            results = function(torch.ones(2))
            sum(results[each].sum() for each in chosen).backward()
            seen.append((chosen, repr([None if each.grad is None else each.grad.tolist() for each in leaves])))
    return seen


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "make", [infinite_derivatives, paths_that_join, rows_of_one_tensor, many_uses, paths_of_other_strides]
)
def test_as_plain_and_as_pytorch(make: Make, dynamic: bool | None) -> None:
    function, leaves = make(flambeau)
    compiled = Compiled(function, dynamic=dynamic)
    found = gradients(compiled, leaves, flambeau, 3)
    assert len(compiled.programs) == 1
    assert not compiled.reasons
    plain, others = make(flambeau)
    assert found == gradients(plain, others, flambeau, 3)
    reference, others = make(pytorch)
    assert found == gradients(reference, others, pytorch, 3)


def test_a_loss_of_one_head_trains_its_layers_alone() -> None:
    def trained(compile: Callable[[Any], Any]) -> Any:
        flambeau.manual_seed(0)
        body, one, other = nn.Linear(3, 3), nn.Linear(3, 2), nn.LSTM(3, 2)

        class Heads(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body, self.one, self.other = body, one, other

            def forward(self, x: Any) -> Any:
                y = self.body(x).relu()
                return self.one(y), self.other(y[None])[0], y.log()

        model = Heads()
        run = compile(model)
        optimizer = flambeau.optim.Adam(model.parameters(), 0.1)
        seen = []
        for turn in range(9):
            optimizer.zero_grad()
            run(flambeau.arange(12.0).reshape(4, 3) / 5 - 1)[turn % 2].sum().backward()
            seen.append([None if each.grad is None else each.grad.tolist() for each in model.parameters()])
            optimizer.step()
        return repr(seen), repr([each.tolist() for each in model.parameters()])

    assert trained(flambeau.compile) == trained(lambda model: model)


def test_zeros_stand_for_gradients_where_this_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, *args: Any) -> Any:
        raise OSError("planted")

    monkeypatch.setattr(PartialBackward, "without", fails)
    monkeypatch.delenv("FLAMBEAU_COMPILE_FAULTS", raising=False)
    a = flambeau.tensor([1.0, 4.0], requires_grad=True)
    compiled = Compiled(lambda x: ((a * x).sqrt(), (a * x).log()))
    for _ in range(2):
        compiled(flambeau.ones(2))
    with pytest.warns(UserWarning, match="planted"):
        compiled(flambeau.ones(2))[0].sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [0.5, 0.25]


def test_a_backward_pass_that_writes_in_place_is_left_whole() -> None:
    def function(x: Any) -> Any:
        doubled = x * 1.5
        highest = doubled.topk(1, -1)[0]
        highest.view((1,)).div_(2)
        return highest, doubled

    compiled = flambeau.compile(function)
    for turn in range(7):
        seen = []
        for call in (function, compiled):
            x = (flambeau.tensor([-1.91, 1.99, -1.26]) + 0.125 * (turn % 3)).requires_grad_()
            for each in call(x):
                each.square().sum().backward(retain_graph=True)
            seen.append(x.grad)
        assert flambeau.equal(*seen)
