"""Random numbers of a GPU are PyTorch's on the same GPU: the same seed, the same bits, the same state afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch as pytorch

import flambeau as torch

pytestmark = [
    pytest.mark.needs_gpu,
    pytest.mark.skipif(not pytorch.cuda.is_available(), reason="PyTorch sees no GPU"),
]

DRAWS: dict[str, Callable[[Any, int], Any]] = {
    "rand": lambda t, n: t.rand(n, device="cuda"),
    "rand in bfloat16": lambda t, n: t.rand(n, device="cuda", dtype=t.bfloat16),
    "rand in float64": lambda t, n: t.rand(n, device="cuda", dtype=t.float64),
    "randn": lambda t, n: t.randn(n, device="cuda"),
    "randn in float16": lambda t, n: t.randn(n, device="cuda", dtype=t.float16),
    "randint": lambda t, n: t.randint(-5, 1000, (n,), device="cuda"),
    "uniform_": lambda t, n: t.empty(n, device="cuda").uniform_(-2, 3),
    "normal_": lambda t, n: t.empty(n, device="cuda").normal_(1, 0.5),
    "bernoulli_": lambda t, n: t.empty(n, device="cuda").bernoulli_(0.3),
    "bernoulli": lambda t, n: t.bernoulli(t.full((n,), 0.7, device="cuda")),
    "exponential_": lambda t, n: t.empty(n, device="cuda").exponential_(2.0),
    "geometric_": lambda t, n: t.empty(n, device="cuda").geometric_(0.2),
    "multinomial": lambda t, n: t.multinomial(t.arange(1.0, n + 1, device="cuda"), 1),
    "multinomial of several": lambda t, n: t.multinomial(t.arange(1.0, n + 8, device="cuda"), 5),
    "multinomial with replacement": lambda t, n: t.multinomial(t.arange(1.0, 30, device="cuda"), n, True),
    "multinomial of rows": lambda t, n: t.multinomial(t.arange(1.0, 22, device="cuda").view(3, 7), n + 1, True),
    "randperm": lambda t, n: t.randperm(n, device="cuda"),
    "randperm in int32": lambda t, n: t.randperm(n, device="cuda", dtype=t.int32),
    "dropout": lambda t, n: t.nn.functional.dropout(t.ones(n, device="cuda"), 0.4),
    "dropout of rows": lambda t, n: t.nn.functional.dropout(t.ones(n, 4, device="cuda"), 0.1),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("count", [1, 1000, 300_001])
def test_numbers_are_pytorchs(name: str, count: int) -> None:
    found = []
    for frame in (torch, pytorch):
        frame.cuda.manual_seed(7)
        first, second = DRAWS[name](frame, count), DRAWS[name](frame, count)
        found.append([each.double().cpu().numpy() for each in (first, second, frame.rand(3, device="cuda"))])
    for mine, wanted in zip(*found, strict=True):
        assert not (mine != wanted).sum()


@pytest.mark.parametrize("count", [7, 20, 300])
def test_orders_of_equal_keys_are_pytorchs(count: int) -> None:
    """The keys of an order are not all different in one of ten cases."""
    for seed in range(150):
        orders = []
        for frame in (torch, pytorch):
            frame.cuda.manual_seed(seed)
            orders.append(frame.randperm(count, device="cuda").tolist())
        assert orders[0] == orders[1], seed
