"""`grad` after `backward(create_graph=True)` is a tensor of its own, with the strides of its leaf."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential

LEAVES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda torch: torch.arange(12.0).view(3, 4),
    "turned": lambda torch: torch.arange(12.0).view(4, 3).t(),
    "with gaps": lambda torch: torch.arange(24.0).view(3, 8)[:, ::2],
}
LOSSES: dict[str, Callable[[Any], Any]] = {
    "a view": lambda x: x.t().sum(),
    "a power": lambda x: (x**3).sum(),
    "a turned product": lambda x: (x * x).t().sum(),
    "part": lambda x: x[0].sum(),
    "matmul": lambda x: x.t().matmul(x).sum(),
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("loss", LOSSES)
@differential
def test_gradients_are_copies(torch: Any, leaf: str, loss: str) -> Any:
    warnings.simplefilter("ignore")  # that leaf and gradient hold each other
    x = LEAVES[leaf](torch).requires_grad_()
    LOSSES[loss](x).backward(create_graph=True)
    first = x.grad
    second = torch.autograd.grad(first.pow(2).sum(), x, retain_graph=True)[0] if first.requires_grad else None
    LOSSES[loss](x).backward(create_graph=True)
    seen = first, first._base is None, second, x.grad, x.grad is first
    x.grad.detach_()
    return *seen, x.grad


@differential
def test_of_a_layer(torch: Any) -> Any:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    layer(torch.ones(2, 3)).pow(2).sum().backward(create_graph=True)
    return [(each.grad, each.grad._base is None, each.grad.detach_().requires_grad) for each in layer.parameters()]
