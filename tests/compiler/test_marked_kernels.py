"""Kernels that are marked as elementwise run inside compiled segments, beside elementwise ops: the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

F: Any = torch.nn.functional

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "softplus": lambda x: F.softplus(x, 1.5, 2.0),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 0.7),
    "celu": lambda x: F.celu(x, 0.7),
    "silu": F.silu,
    "mish": F.mish,
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardtanh": lambda x: F.hardtanh(x, -0.4, 0.6),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "logsigmoid": F.logsigmoid,
    "prelu": lambda x: F.prelu(x, torch.full((x.shape[1],), 0.3)),
}


@pytest.mark.parametrize("shape", [(3, 5), (90, 70)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits(name: str, shape: tuple[int, ...]) -> None:
    function = FUNCTIONS[name]

    def step(x: Any) -> Any:
        (function(x * 1.5) - 0.25).sum().backward()
        return function(x.detach() * 2.0 + 1.0)

    compiled = torch.compile(step)
    for seed in range(6):
        x, y = (torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_() for _ in range(2))
        assert torch.equal(compiled(x), step(y))
        assert x.grad is not None
        assert y.grad is not None
        assert torch.equal(x.grad, y.grad)


@pytest.mark.parametrize("name", ["softplus", "leaky_relu", "elu", "hardtanh", "silu", "mish", "logsigmoid"])
def test_one_segment(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = torch.compile(lambda x: (function(x * 2.0) + 1.0).sin())
    for _ in range(6):
        compiled(torch.ones(64, 64))
    lines = torch.compiler.explain(compiled).table().splitlines()[1:]
    assert len(lines) == 1, lines
