"""Compiled functions on the device beside themselves uncompiled.

A program yields, call by call, what one call of a function gives; it is handed `compile`, which is `flambeau.compile`
or does nothing. Both must yield the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import nn

from .conftest import is_simulated

Compile = Callable[[Any], Any]
Program = Callable[[Compile], Iterator[Any]]

CALLS = 8
"""The fourth call is a program, the sixth or so a graph."""


def seen(value: Any) -> Any:
    """What can be compared of a result."""
    if isinstance(value, torch.Tensor):
        facts = value.dtype, value.device, value.stride(), value.requires_grad, value.is_leaf
        return [*facts, value.detach().double().cpu().numpy()]
    return [seen(each) for each in value] if isinstance(value, (list, tuple)) else value


def same(one: Any, other: Any) -> bool:
    """Whether results are the same: to the bit on the simulated device, and up to products of the library on a GPU,
    which chooses among its kernels by where matrices lie."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and not is_simulated():
        return np.allclose(one, other, 1e-5, 1e-6)
    return bool(np.array_equal(one, other, equal_nan=True)) if isinstance(one, np.ndarray) else one == other


def results(made: Program, compile: Compile) -> list[Any]:
    torch.manual_seed(0)
    return [seen(each) for each in made(compile)]


def drawn(*shape: int) -> Any:
    return torch.randn(*shape).cuda()


def graphs(compiled: Any) -> int:
    """How many graphs a compiled function has."""
    explained: str = torch.compiler.explain(compiled)
    return explained.count("# one graph")


def network(*between: nn.Module) -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), *between, nn.Linear(8, 3)).cuda()


def step_of(model: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def labels() -> Any:
    return torch.randint(0, 3, (4,)).cuda()
