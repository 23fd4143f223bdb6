"""Casts of weights, and of their gradients, that share launches: values, what may change between, and who looks on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._backends.cuda.elementwise import multi


class _Layers(nn.Module):
    """Four layers, of which some are left out now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(4)])
        self.used = [0, 1, 2, 3]
        self.between: Callable[[int], Any] = lambda number: None

    def forward(self, x: Any) -> Any:
        for number in self.used:
            x = self.layers[number](x).tanh()
            self.between(number)
        return x


@pytest.fixture
def launches() -> Iterator[list[int]]:
    """How many casts each launch for several made."""
    counted: list[int] = []
    convert = multi._convert

    def counting(given: Any, made: Any, launches: Any = None) -> Any:
        counted.append(len(given))
        return convert(given, made, launches)

    with mock.patch.object(multi, "_convert", counting):
        yield counted


def _model() -> Any:
    torch.manual_seed(0)
    return _Layers().to("cuda")


def _inputs() -> Any:
    return torch.linspace(-1, 1, 12, device="cuda").view(2, 6)


def _forward(model: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        return model(_inputs())


def _expected(model: Any) -> Any:
    """Of a region that knows no weights."""
    fresh = _Layers().to("cuda")
    fresh.load_state_dict(model.state_dict())
    fresh.used = model.used
    return _forward(fresh)


@pytest.mark.parametrize("mode", [nullcontext, torch.no_grad, torch.inference_mode])
def test_a_region_casts_what_the_last_one_cast(mode: Any, launches: list[int]) -> None:
    model = _model()
    with mode():
        first, second, third = (_forward(model) for _ in range(3))
    assert launches == [8, 8]
    assert torch.equal(first, second)
    assert torch.equal(first, third)
    assert second.is_inference() is first.is_inference()


@pytest.mark.parametrize("mode", [nullcontext, torch.no_grad])
@pytest.mark.parametrize("how", ["in place", "by data", "by new data", "by an optimizer"])
def test_a_weight_that_changes_within_the_region_is_cast_anew(mode: Any, how: str) -> None:
    model = _model()
    weight = model.layers[2].weight
    optimizer = torch.optim.SGD([weight], 0.5)

    def change(number: int) -> None:
        if number != 1:
            return
        if how == "by data":
            weight.data.mul_(2)
        elif how == "by new data":
            weight.data = weight.data * 2
        elif how == "by an optimizer":
            weight.grad = torch.ones_like(weight)
            optimizer.step()
        else:
            with torch.no_grad():
                weight.mul_(2)

    with mode():
        _forward(model)
        model.between = change
        found = _forward(model)
        model.between = lambda number: None
        with torch.no_grad():
            assert torch.equal(found, _expected(model))


def test_what_a_region_leaves_unused_is_cast_one_by_one_again(launches: list[int]) -> None:
    model = _model()
    _forward(model)
    model.used = [0, 3]
    assert torch.equal(_forward(model), _expected(model))
    assert launches == [8]
    assert torch.equal(_forward(model), _expected(model))
    _forward(model)
    assert launches == [8, 4], "that of the layers in use, learnt in between"


def test_weights_that_are_gone_are_forgotten() -> None:
    model = _model()
    _forward(model)
    model.layers[3] = nn.Linear(6, 6).cuda()
    assert torch.equal(_forward(model), _expected(model))


def test_gradients_are_cast_together(launches: list[int]) -> None:
    model = _model()
    for _ in range(2):
        _forward(model).float().sum().backward()
    together = [each.grad.clone() for each in model.parameters()]
    assert launches == [8, 8, 8], "gradients, weights, gradients"
    model.zero_grad()
    handles = [each.register_hook(lambda grad: grad) for each in model.parameters()]
    for _ in range(2):
        _forward(model).float().sum().backward()
    assert len(launches) == 5, "the weights"
    for mine, each in zip(together, model.parameters(), strict=True):
        assert mine.dtype is torch.float32
        assert mine.is_contiguous()
        assert torch.equal(mine, each.grad)
    assert all(handle.id >= 0 for handle in handles)


def test_a_pass_leaves_nothing_for_the_garbage_collector() -> None:
    model = _model()
    for _ in range(2):
        _forward(model).float().sum().backward()
    model.zero_grad()
    gc.collect()
    gc.disable()
    try:
        before = torch.cuda.memory_allocated()
        _forward(model).float().sum().backward()
        model.zero_grad()
        assert torch.cuda.memory_allocated() == before
    finally:
        gc.enable()


def test_hooks_see_the_gradients_before_them() -> None:
    model = _model()
    seen: list[bool] = []

    def look(_: Any) -> None:
        seen.append(all(each.grad is not None for number in (1, 2, 3) for each in model.layers[number].parameters()))

    model.layers[0].weight.register_post_accumulate_grad_hook(look)
    _forward(model).float().sum().backward()
    assert seen == [True]


def test_functions_of_the_user_see_the_gradients_before_them() -> None:
    model = _model()
    seen: list[bool] = []

    class Looking(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(model.layers[0].weight.grad is not None)
            raise ValueError("enough")

    given = _inputs().requires_grad_()
    with torch.autocast("cuda", torch.bfloat16):
        result = model(Looking.apply(given))
    with pytest.raises(ValueError, match="enough"):
        result.float().sum().backward()
    assert seen == [True]
    assert all(each.grad is not None for each in model.parameters())


def test_an_error_leaves_the_gradients_before_it() -> None:
    model = _model()
    given = _inputs().requires_grad_()
    with torch.autocast("cuda", torch.bfloat16):
        result = model(given * 1)
    hidden = result.grad_fn
    while hidden.name() != "MulBackward0":
        hidden = hidden.next_functions[1 if hidden.name() == "AddmmBackward0" else 0][0]

    def fail(_: Any) -> None:
        raise ValueError("enough")

    hidden.register_prehook(fail)
    with pytest.raises(ValueError, match="enough"):
        result.float().sum().backward()
    assert all(each.grad is not None for each in model.parameters())


def test_profilers_see_every_cast(launches: list[int]) -> None:
    model = _model()
    _forward(model).float().sum().backward()
    launches.clear()
    with torch.profiler.profile() as profiler:
        _forward(model).float().sum().backward()
    assert launches == [8, 8]
    counts = {each.key: each.count for each in profiler.key_averages()}
    assert counts["aten::_to_copy"] >= 16
