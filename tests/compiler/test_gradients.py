"""Gradients that compiled calls give to leaves: not copied, and nobody else's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau import nn
from flambeau.autograd import engine
from flambeau.compiler.emit.layouts import Layouts

CALLS = 6


def test_gradients_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[Any] = []
    copied_like: Callable[..., Any] = engine._copied_like

    def counted(*args: Any) -> Any:
        copies.append(args)
        return copied_like(*args)

    monkeypatch.setattr(engine, "_copied_like", counted)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 64))
    compiled = flambeau.compile(model)
    for _ in range(CALLS):
        model.zero_grad()
        compiled(flambeau.randn(4, 3, 8, 8)).sum().backward()
    assert flambeau.compiler.explain(compiled).programs
    assert not copies


def test_leaves_with_one_gradient_each_have_their_own() -> None:
    first, second = flambeau.ones(40, 40, requires_grad=True), flambeau.ones(40, 40, requires_grad=True)

    @flambeau.compile
    def function() -> Any:
        return first + second

    for _ in range(CALLS):
        first.grad = second.grad = None
        function().backward(flambeau.full((40, 40), 3.0))
        assert first.grad is not None
        first.grad.mul_(2)
        assert second.grad is not None
        assert second.grad.unique().tolist() == [3.0]


def test_a_gradient_that_comes_in_is_not_the_leaf_s() -> None:
    leaf = flambeau.ones(40, 40, requires_grad=True)

    @flambeau.compile
    def function() -> Any:
        return leaf.t().relu().t() + 0, leaf.view(1600)

    for _ in range(CALLS):
        leaf.grad = None
        given = flambeau.full((1600,), 3.0)
        function()[1].backward(given)
        assert leaf.grad is not None
        leaf.grad.mul_(2)
        assert given.unique().tolist() == [3.0]


LOSSES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda y: y.sum(),
    "mean": lambda y: y.mean(),
    "of sums": lambda y: y.sum(-1).square().sum(),
    "of rows": lambda y: (y.sum(0) / 2).sum(),
    "turned": lambda y: y.transpose(0, 1).contiguous().square().sum(),
}


def test_gradients_of_one_layout_are_viewed_where_those_of_another_are_copied() -> None:
    model = nn.MultiheadAttention(16, 4, batch_first=True)
    compiled = flambeau.compile(model)
    for _ in range(4):
        x, gradients = flambeau.randn(2, 6, 16), []
        given = flambeau.randn(16, 6, 2).permute(2, 1, 0)
        for call in (model, compiled):
            model.zero_grad()
            call(x, x, x, need_weights=False)[0].backward(given)
            gradients.append([each.grad for each in model.parameters()])
        assert all(map(flambeau.equal, *gradients))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.float64])
@pytest.mark.parametrize("options", [{"dynamic": False}, {"dynamic": True}], ids=str)
def test_gradients_that_are_not_contiguous_give_the_plain_bits(name: str, dtype: Any, options: dict[str, bool]) -> None:
    networks = {
        (6, 1): nn.Linear(1, 3),
        (5, 5): nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)),
        (90, 150): nn.Sequential(nn.Linear(150, 170), nn.GELU(), nn.Linear(170, 130)),
        (4, 6, 5): nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)),
        (2, 3, 9, 9): nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3)),
    }
    for shape, model in networks.items():
        compiled = flambeau.compile(model.to(dtype), **options)
        for _ in range(4):
            x, gradients = flambeau.randn(*shape, dtype=dtype), []
            for call in (model, compiled):
                model.zero_grad()
                LOSSES[name](call(x)).backward()
                gradients.append([each.grad for each in model.parameters()])
            assert all(map(flambeau.equal, *gradients)), shape
        assert flambeau.compiler.explain(compiled).programs


def test_what_fails_for_other_layouts_leaves_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, *args: Any) -> Any:
        raise OSError("planted")

    monkeypatch.setattr(Layouts, "run", fails)
    monkeypatch.delenv("FLAMBEAU_COMPILE_FAULTS", raising=False)
    model = nn.Linear(5, 3)
    compiled = flambeau.compile(model)
    for _ in range(2):
        compiled(flambeau.ones(4, 5))
    with pytest.warns(UserWarning, match="planted"):
        compiled(flambeau.ones(4, 5)).sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.unique().tolist() == [4.0]
    x, back = flambeau.randn(7, 5), flambeau.randn(3, 7)
    found = []
    for each in (compiled, model):
        model.zero_grad()
        each(x).backward(back.t())  # as it arrives: a copy would be added in another order
        found.append([parameter.grad for parameter in model.parameters()])
    assert all(map(flambeau.equal, *found))


def test_gradients_in_more_layouts_than_there_are_functions_for() -> None:
    model = nn.Sequential(nn.Linear(24, 36), nn.Tanh(), nn.Linear(36, 36), nn.Unflatten(1, (6, 6)))
    compiled = flambeau.compile(model)
    for _ in range(3):
        compiled(flambeau.ones(40, 24)).square().mean().backward()
    for order in itertools.permutations(range(3)):
        for step in (1, 2, 3):
            sizes = [each * step for each in (40, 6, 6)]
            back = flambeau.randn([sizes[each] for each in order]).permute([order.index(each) for each in range(3)])
            x, found = flambeau.randn(40, 24), []
            for each in (compiled, model):
                model.zero_grad()
                each(x).backward(back[::step, ::step, ::step])
                found.append([parameter.grad for parameter in model.parameters()])
            assert all(map(flambeau.equal, *found)), back.stride()


def test_a_saved_tensor_that_is_the_gradient_stays_as_it_was() -> None:
    leaf, factor = flambeau.ones((), requires_grad=True), flambeau.tensor(3.0)

    @flambeau.compile
    def function() -> Any:
        return leaf * factor

    for _ in range(CALLS):
        leaf.grad = None
        result = function()
        for time in range(1, 4):
            result.backward(retain_graph=True)
            assert leaf.grad is not None
            assert leaf.grad.item() == 3.0 * time
        assert factor.item() == 3.0
        leaf.grad.mul_(5)
        result.backward()
        assert leaf.grad.item() == 48.0


def test_gradients_of_a_call_before_stay() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64))
    compiled = flambeau.compile(model)
    kept: list[list[Any]] = []
    copied: list[list[Any]] = []
    for number in range(CALLS):
        model.zero_grad()
        compiled(flambeau.full((8, 64), number + 1.0)).square().sum().backward()
        kept.append([each.grad for each in model.parameters()])
        copied.append([each.clone() for each in kept[-1]])
    for gradients, copies in zip(kept, copied, strict=True):
        assert all(map(flambeau.equal, gradients, copies))


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda h, x, w: h + w,
    "sums": lambda h, x, w: (h + w) - 1,
    "product": lambda h, x, w: h * w + x,
    "layer": lambda h, x, w: (x @ w.diag() + h @ w.diag()).tanh(),
    "twice": lambda h, x, w: h + w * w + h * x,
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("options", [{}, {"dynamic": True}], ids=str)
@pytest.mark.parametrize("begins_with_a_leaf", [False, True])
def test_a_parameter_of_calls_one_after_the_other(
    name: str, options: dict[str, bool], begins_with_a_leaf: bool
) -> None:
    """What a call is given has a history in which its parameters are, too: that is not behind the call's own part."""
    weight, begin = flambeau.randn(4, requires_grad=True), flambeau.randn(3, 4, requires_grad=True)
    step = STEPS[name]
    compiled = flambeau.compile(lambda h, x: step(h, x, weight), **options)
    for _ in range(CALLS):
        gradients = []
        xs = [flambeau.randn(3, 4) for _ in range(4)]
        for call in (lambda h, x: step(h, x, weight), compiled):
            weight.grad = begin.grad = None
            state = begin if begins_with_a_leaf else begin * weight
            for x in xs:
                state = call(state, x)
            state.square().sum().backward()
            gradients.append([weight.grad, begin.grad])
        assert all(map(flambeau.equal, *gradients))
    assert flambeau.compiler.explain(compiled).programs


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_cells_have_programs_for_states_with_a_history(cell: Any) -> None:
    model = cell(4, 5)
    compiled = flambeau.compile(model)
    for _ in range(CALLS):
        gradients = []
        xs = [flambeau.randn(3, 4) for _ in range(4)]
        for call in (model, compiled):
            model.zero_grad()
            state = None
            for x in xs:
                state = call(x, state)
            (state[0] if type(state) is tuple else state).sum().backward()
            gradients.append([each.grad for each in model.parameters()])
        assert all(map(flambeau.equal, *gradients))
    assert not [each for each in flambeau.compiler.explain(compiled).reasons if "does not hold" in each]
