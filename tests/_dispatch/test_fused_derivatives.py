"""Derivatives in one pass beside the formulas that they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau._backends import tiers

F = nn.functional

FUNCTIONS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y * 3,
    "mul": lambda x, y: x * y,
    "square": lambda x, y: x * x,
    "div": lambda x, y: x / (y.abs() + 1),
    "times number": lambda x, y: x * 2.5,
    "number over": lambda x, y: 2 / (x.abs() + 1),
    "clone": lambda x, y: x.clone(),
    "exp": lambda x, y: x.exp(),
    "log": lambda x, y: (x.abs() + 1).log(),
    "sqrt": lambda x, y: (x.abs() + 1).sqrt(),
    "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "erf": lambda x, y: x.erf(),
    "sin": lambda x, y: x.sin() + y.cos(),
    "relu": lambda x, y: x.relu(),
    "leaky": lambda x, y: F.leaky_relu(x, 0.2),
    "gelu": lambda x, y: F.gelu(x),
    "gelu tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "silu": lambda x, y: F.silu(x),
    "mish": lambda x, y: F.mish(x),
    "elu": lambda x, y: F.elu(x),
    "softplus": lambda x, y: F.softplus(x),
    "hardswish": lambda x, y: F.hardswish(x),
    "maximum": lambda x, y: flambeau.maximum(x, y),
    "where": lambda x, y: flambeau.where(x > 0, x, y),
    "atan2": lambda x, y: flambeau.atan2(x, y),
    "power": lambda x, y: x**3,
    "clamp": lambda x, y: x.clamp(-0.5, 0.5),
    "lerp": lambda x, y: flambeau.lerp(x, y, 0.3),
    "addcmul": lambda x, y: flambeau.addcmul(x, y, y, value=0.5),
}
SHAPES = [((80, 90), (80, 90)), ((80, 90), (90,)), ((80, 90), (80, 1)), ((80, 1, 90), (3, 90)), ((6000,), ())]


def gradients(function: Any, x: Any, y: Any) -> list[Any]:
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    result = function(x, y)
    weight = flambeau.linspace(-1, 1, result.numel(), dtype=result.dtype).reshape(result.shape)
    found = flambeau.autograd.grad(result, (x, y), weight, allow_unused=True)
    return [result, *found]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_fused_derivatives_are_the_formulas(name: str, shapes: Any) -> None:
    flambeau.manual_seed(0)
    x, y = (flambeau.randn(shape, dtype=flambeau.float64) for shape in shapes)
    fused = gradients(FUNCTIONS[name], x, y)
    with tiers.numpy_only():
        plain = gradients(FUNCTIONS[name], x, y)
    for one, two in zip(fused, plain, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert one.shape == two.shape
            np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_common_nodes_are_fused() -> None:
    x, y = (flambeau.randn(100, 100, requires_grad=True) for _ in range(2))
    for result in (x * y, x.tanh(), F.gelu(x), x / y, x.sigmoid()):
        node = type(result.grad_fn)
        node.fusions = {}  # type: ignore[union-attr]
        result.sum().backward()
        assert [each is not None for each in node.fusions.values()] == [True]  # type: ignore[union-attr]


def test_gradients_of_gradients_run_the_formulas() -> None:
    x = flambeau.randn(5000, dtype=flambeau.float64, requires_grad=True)
    (first,) = flambeau.autograd.grad(x.tanh().sum(), x, create_graph=True)
    (second,) = flambeau.autograd.grad(first.sum(), x)
    t = np.tanh(x.detach().numpy())
    np.testing.assert_allclose(second.numpy(), -2 * t * (1 - t * t), rtol=1e-12, atol=1e-12)


def test_a_gradient_that_is_passed_on_is_not_computed() -> None:
    x, y = (flambeau.randn(5000, requires_grad=True) for _ in range(2))
    grad = flambeau.ones(5000)
    first, second = flambeau.autograd.grad(x + y, (x, y), grad)
    assert first.data_ptr() == grad.data_ptr()
    assert second.data_ptr() == grad.data_ptr()


def test_saved_tensors_are_still_checked() -> None:
    x = flambeau.randn(5000, requires_grad=True)
    y = x.exp()
    z = y * 2
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y.sum() + z.sum()).backward()
