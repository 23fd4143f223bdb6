"""How a call is described: what it is called, what it runs, on what data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = Callable[[], Any]
"""Makes an array; made anew for each framework, so that no list of cases holds memory."""
Case = Callable[[Any], Callable[[], Any]]
"""Of the framework that plays `torch`, the call to be timed."""

CASES: dict[str, Case] = {}


def enter(**cases: Case) -> None:
    """Add calls; two underscores in a name stand for a comma and a space."""
    for name, case in cases.items():
        title = name.replace("__", ", ")
        if title in CASES:
            raise ValueError(f"two cases are called {title!r}")
        CASES[title] = case


def floats(*shape: int) -> Data:
    """Normal numbers in float32."""
    return lambda: np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def integers(high: int, *shape: int) -> Data:
    """Numbers from 0 up to `high`, exclusive, in int64."""
    return lambda: np.random.default_rng(0).integers(0, high, shape)


def call(function: Callable[..., Any], *data: Data) -> Case:
    """A call `function(torch, *tensors)`."""

    def prepare(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        tensors = [torch.from_numpy(make()) for make in data]
        return lambda: function(torch, *tensors)

    return prepare


def step(build: Callable[[Any], Any], *data: Data) -> Case:
    """A layer forward and backward, with the gradients of its parameters and of its inputs, if those are floats."""

    def prepare(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        layer = build(torch)
        tensors = [torch.from_numpy(make()) for make in data]
        for each in tensors:
            if each.is_floating_point():
                each.requires_grad_()

        def run() -> Any:
            result = layer(*tensors)
            result = result[0] if isinstance(result, tuple) else result
            result.sum().backward()
            return result.detach()

        return run

    return prepare
