"""Gradients whose kernels are found by the layouts of what they read: the bits of the formulas, which watchers see."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau._backends.cuda.linalg import layer_gradients

functional = torch.nn.functional
DTYPES = ["float32", "bfloat16"]


def _gradients(call: Callable[..., Any], given: Any, needed: Any, factor: float = 1.0) -> list[Any]:
    leaves = [each.detach().requires_grad_(need) for each, need in zip(given, needed, strict=True)]
    result = call(*leaves)
    result.backward(torch.linspace(-1, 1, result.numel(), device="cuda").view(result.shape).to(result.dtype) * factor)
    return [each.grad for each in leaves]


def _agree(call: Callable[..., Any], given: Any, needed: Any) -> None:
    """Plans, whether they are new or kept, give what the formulas give under a profiler."""
    for factor in (1.0, 3.0):
        planned = _gradients(call, given, needed, factor)
        with torch.profiler.profile():
            formulas = _gradients(call, given, needed, factor)
        for one, other in zip(planned, formulas, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert torch.equal(one, other)
                assert one.dtype is other.dtype
                assert one.stride() == other.stride()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("needed", [each for each in itertools.product([False, True], repeat=3) if any(each)])
@pytest.mark.parametrize("shape", [(6, 16), (2, 3, 16)])
def test_linear_layers(dtype: str, needed: tuple[bool, ...], shape: tuple[int, ...]) -> None:
    x, weight, bias = (torch.randn(sizes).to(getattr(torch, dtype)).cuda() for sizes in (shape, (8, 16), (8,)))
    _agree(functional.linear, (x, weight, bias), needed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("row", [(8,), (1, 8), (6, 8)])
def test_products_with_a_row(dtype: str, turned: tuple[bool, bool], row: tuple[int, ...]) -> None:
    kind = getattr(torch, dtype)
    left, right = (
        torch.randn(sizes[::-1]).to(kind).cuda().t() if turn else torch.randn(sizes).to(kind).cuda()
        for sizes, turn in zip([(6, 16), (16, 8)], turned, strict=True)
    )
    added = torch.randn(row).to(kind).cuda()
    for needed in ((True, True, True), (False, True, False), (True, False, True)):
        _agree(torch.addmm, (added, left, right), needed)
        _agree(lambda *given: torch.addmm(*given, beta=2, alpha=3), (added, left, right), needed)


def test_gradients_of_a_layer_are_those_of_the_host_and_have_a_plan() -> None:
    given = [torch.randn(sizes) for sizes in ((6, 16), (8, 16), (8,))]
    layer_gradients._plans.clear()
    there = _gradients(functional.linear, [each.cuda() for each in given], (True, True, True))
    assert len(layer_gradients._plans) == 1
    x, weight, bias = (each.requires_grad_() for each in given)
    functional.linear(x, weight, bias).backward(torch.linspace(-1, 1, 48).view(6, 8))
    for one, other in zip(there, (x.grad, weight.grad, bias.grad), strict=True):
        assert other is not None
        assert torch.allclose(one.cpu(), other, 1e-5, 1e-5)


CALLS: dict[str, Callable[..., Any]] = {
    "mul": torch.mul,
    "tanh": lambda x, y: x.tanh() * y,
    "numbers": lambda x, y: (x * 2).mul(3.0) * (y / 7),
    "where": lambda x, y: torch.where(x > 0, -x, y),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")])
def test_elementwise_ops(name: str, dtypes: tuple[str, str]) -> None:
    x, y = (torch.randn(5, 8).to(getattr(torch, each)).cuda() for each in dtypes)
    for first, second in ((x, y), (x.t(), y.t()), (x, y[:1])):
        for needed in ((True, True), (True, False), (False, True)):
            _agree(CALLS[name], (first, second), needed)


def test_numbers_are_those_of_the_call() -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    for number in (2.0, 3.0, 5):
        (gradient,) = torch.autograd.grad((x * number).sum(), x)
        assert gradient.tolist() == [number] * 4


def test_a_saved_tensor_that_changed_is_noticed() -> None:
    x, y = torch.ones(4, device="cuda", requires_grad=True), torch.ones(4, device="cuda")
    for _ in range(2):  # the second has a plan
        torch.autograd.grad((x * y).sum(), x)
    product = x * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    product = (x * y).sum()
    product.backward()
    with pytest.raises(RuntimeError, match="second time"):
        product.backward()


def test_hooks_of_a_weights_cast_are_called() -> None:
    weight = torch.ones(4, 4, device="cuda", requires_grad=True)
    x = torch.ones(2, 4, device="cuda")
    seen: list[Any] = []
    with torch.autocast("cuda", torch.bfloat16):
        result = functional.linear(x, weight)
    node: Any = result.grad_fn
    while node.name() != "ToCopyBackward0":
        node = next(each for each, _ in node.next_functions if each is not None)
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0].dtype))
    result.sum().backward()
    assert seen == [torch.bfloat16]
    assert weight.grad is not None
    assert weight.grad.dtype is torch.float32
    assert weight.grad.tolist() == [[2.0] * 4] * 4
